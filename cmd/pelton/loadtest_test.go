package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/loadtest"
	"github.com/peltonq/pelton/schema/schematest"
)

// The whole scenario at the least size: a server in a process of its own, whose pages are found by their links.
func TestLoadtestOfPages(t *testing.T) {
	t.Parallel()
	if !pgtest.FullSize() {
		t.Skip("it takes half a minute of a quiet machine; `make scenarios` runs it")
	}
	p := launch(t, nil, "loadtest", "pages", "--finished", "7000", "--ready", "100", "--nodes", "40", "--log-bytes", "100000", "--reads", "3", "--for", "1s", "--rounds", "2", "--json")
	if code := p.exit(); code != exitOK {
		t.Fatalf("exit code %d", code)
	}
	var report loadtest.PagesReport
	if err := json.Unmarshal([]byte(p.out.String()), &report); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, page := range report.Pages {
		kinds = append(kinds, page.Page)
		if page.Status != 200 || page.Median <= 0 || page.P95 < page.Median {
			t.Errorf("%+v", page)
		}
	}
	for _, kind := range []string{"/", "/jobs", "/jobs/*", "/jobs/*/log", "/runs/*", "/flows", "/schedules", "/schedules/*", "/dead", "/audit", "/executors", "/api/v1/jobs"} {
		if !slices.Contains(kinds, kind) && !slices.Contains(kinds, kind+"?run") {
			t.Errorf("%s was not visited: %q", kind, kinds)
		}
	}
	if report.Finished != 7000 || report.LiveP50 <= 0 || report.LiveMax < report.LiveP50 || report.Viewers != 10 || report.Load.Rounds != 2 {
		t.Errorf("%+v", report)
	}
}

// asOwner in the environment names a database: the tests' executable starts the server that pages are measured with, prints its address, and waits to
// be killed.
const asOwner = "PELTON_TEST_AS_OWNER"

func ownServer(databaseURL string) error {
	if err := os.Unsetenv(asOwner); err != nil { // the server is the program itself
		return err
	}
	server, err := (&app{stderr: os.Stderr}).servePages(context.Background(), databaseURL)
	if err != nil {
		return err
	}
	if _, err := fmt.Println(server.URL); err != nil {
		return err
	}
	select {}
}

// The load test of pages is killed: the server that it had started ends.
func TestPagesServerDiesWithItsOwner(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells a child that its owner has died")
	}
	p := prepare(t, []string{asOwner + "=" + schematest.DSN(t)})
	p.cmd.WaitDelay = time.Second // a server that lives on keeps its output open
	p.start()
	var address string
	pgtest.Eventually(t, patience, func() bool {
		line, _, whole := strings.Cut(p.out.String(), "\n")
		address = strings.TrimPrefix(line, "http://")
		return whole
	}, "the server's address")
	refuses := func() bool {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err == nil {
			err = conn.Close()
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	}
	if refuses() {
		t.Fatalf("nobody listens at %q", address)
	}
	p.kill()
	pgtest.Eventually(t, patience, refuses, "the server's end")
}

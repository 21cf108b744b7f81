package postgres

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// archive packs programs of a server of this version as the repository does: a .jar (zip) with a .txz in it.
func archive(t *testing.T, version string) []byte {
	t.Helper()
	xz, err := exec.LookPath("xz")
	if err != nil {
		t.Skip("xz, which packs the archive, is not installed")
	}
	dir := t.TempDir()
	fakeServer(t, dir, version)
	var packed bytes.Buffer
	tape := tar.NewWriter(&packed)
	for _, program := range []string{"initdb", "postgres", "pg_ctl"} {
		text, err := os.ReadFile(filepath.Join(dir, "postgres"))
		if err != nil {
			t.Fatal(err)
		}
		header := &tar.Header{Name: "./bin/" + program, Typeflag: tar.TypeReg, Mode: 0o700, Size: int64(len(text))}
		if err := tape.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := tape.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	link := &tar.Header{Name: "./bin/postmaster", Typeflag: tar.TypeSymlink, Linkname: "postgres"}
	if err := errors.Join(tape.WriteHeader(link), tape.Close()); err != nil {
		t.Fatal(err)
	}
	compress := exec.CommandContext(t.Context(), xz, "--stdout", "--check=crc32")
	compress.Stdin = &packed
	compressed, err := compress.Output()
	if err != nil {
		t.Fatal(err)
	}
	var jar bytes.Buffer
	bundle := zip.NewWriter(&jar)
	entry, err := bundle.Create("postgres-some-system.txz")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := entry.Write(compressed); err != nil {
		t.Fatal(err)
	}
	if err := bundle.Close(); err != nil {
		t.Fatal(err)
	}
	return jar.Bytes()
}

// repository serves one archive for version 18.9.0 and counts how often it was asked for.
func repository(t *testing.T, jar []byte, checksum string) (url string, asked *atomic.Int32) {
	t.Helper()
	asked = &atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !strings.Contains(r.URL.Path, "/18.9.0/"):
			http.NotFound(w, r)
		case strings.HasSuffix(r.URL.Path, ".sha256"):
			_, _ = w.Write([]byte(checksum))
		default:
			asked.Add(1)
			_, _ = w.Write(jar)
		}
	}))
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections() // the library's client
		server.Close()
	})
	return server.URL, asked
}

func TestDownload(t *testing.T) {
	t.Parallel()
	jar := archive(t, "18.9")
	sum := sha256.Sum256(jar)
	url, asked := repository(t, jar, hex.EncodeToString(sum[:]))
	options := DownloadOptions{Dir: filepath.Join(openDir(t), "cache"), Version: "18.9.0", RepositoryURL: url}
	wanted := Binaries{Dir: filepath.Join(options.Dir, "postgresql-18.9.0", "bin"), Version: "18.9", Major: 18}
	var users sync.WaitGroup
	for range 3 {
		users.Go(func() {
			if found, err := Download(t.Context(), options); err != nil || found != wanted {
				t.Errorf("got %+v, %v", found, err)
			}
		})
	}
	users.Wait()
	if n := asked.Load(); n != 1 {
		t.Errorf("downloaded %d times", n)
	}
	info, err := os.Stat(filepath.Join(wanted.Dir, "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm()&0o055 != 0o055 {
		t.Errorf("the server's user cannot run it: mode %v", info.Mode())
	}
	onlyLocks(t, options.Dir, "postgresql-18.9.0")
}

// onlyLocks makes sure that a directory holds these entries and lock files, nothing else.
func onlyLocks(t *testing.T, dir string, wanted ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".lock") && !slices.Contains(wanted, entry.Name()) {
			t.Errorf("%s is left over", entry.Name())
		}
	}
}

func TestDownloadFails(t *testing.T) {
	t.Parallel()
	jar := archive(t, "18.9")
	url, _ := repository(t, jar, strings.Repeat("0", 64))
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for name, c := range map[string]struct{ url, version, wanted string }{
		"wrong checksum":  {url, "18.9.0", "checksums do not match"},
		"no such version": {url, "18.7.0", "18.7.0"},
		"no repository":   {gone.URL, "18.9.0", "unable to connect"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(openDir(t), "cache")
			_, err := Download(t.Context(), DownloadOptions{Dir: dir, Version: c.version, RepositoryURL: c.url})
			if err == nil || !strings.Contains(err.Error(), c.wanted) {
				t.Errorf("got %v", err)
			}
			onlyLocks(t, dir)
		})
	}
}

func TestDownloadReturnsWhenItsContextEnds(t *testing.T) {
	t.Parallel()
	asked, answer := make(chan struct{}), make(chan struct{})
	tell := sync.OnceFunc(func() { close(asked) })
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		tell()
		<-answer
	}))
	dir := filepath.Join(openDir(t), "cache")
	ctx, cancel := context.WithCancelCause(t.Context())
	outcome := make(chan error, 1)
	go func() {
		_, err := Download(ctx, DownloadOptions{Dir: dir, Version: "18.9.0", RepositoryURL: server.URL})
		outcome <- err
	}()
	<-asked
	cancel(errors.New("Ctrl-C"))
	if err := <-outcome; err == nil || !strings.Contains(err.Error(), "Ctrl-C") {
		t.Errorf("got %v", err)
	}
	close(answer)
	eventually(t, "the directory to be cleared", func() bool {
		left, err := filepath.Glob(filepath.Join(dir, "download-*"))
		return err == nil && len(left) == 0
	})
	http.DefaultClient.CloseIdleConnections()
	server.Close()
}

func TestDownloadedServerThatDoesNotRun(t *testing.T) {
	t.Parallel()
	jar := archive(t, "nonsense")
	sum := sha256.Sum256(jar)
	url, _ := repository(t, jar, hex.EncodeToString(sum[:]))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := Download(ctx, DownloadOptions{Dir: filepath.Join(openDir(t), "cache"), Version: "18.9.0", RepositoryURL: url})
	if err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("got %v", err)
	}
}

package page_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/admin/internal/page/pagetest"
	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs/joblog"
)

// shownSteps is how many steps a task's log shows that is whole so far, each line once and in order; else what is shown.
const shownSteps = `((text) => {
	const lines = text.split("\n").filter((line) => line.startsWith("step "));
	return lines.every((line, i) => line === "step " + (i + 1)) ? lines.length : text;
})(document.querySelector(".log").textContent)`

// What is live comes back by itself after its connection broke, whatever broke it, and says so meanwhile; a log goes on where it was.
func TestLiveComesBack(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{Passwords: true, Jobs: pagetest.Working()})
	line := s.Line()
	id := s.Insert(pagetest.Task{Wait: true}, nil)
	s.WaitState(id, rivertype.JobStateRunning)
	b := s.Browser("admin")
	b.Go(fmt.Sprintf("/jobs/%d", id))
	b.Eval(`window.sameDocument = true`)
	live := func(state string) {
		t.Helper()
		b.WaitUntil(fmt.Sprintf(`["#now", ".log"].every((e) => document.querySelector(e).dataset.liveState === %q)`, state))
	}
	steps := func() int {
		t.Helper()
		n, err := strconv.Atoi(b.Eval(shownSteps))
		if err != nil {
			t.Fatalf("the log is not whole: %v", err)
		}
		return n
	}
	printed := func() int64 {
		sizes, err := joblog.Sizes(t.Context(), s.Pool, "pelton", id)
		if err != nil {
			t.Fatal(err)
		}
		var n int64
		for _, size := range sizes {
			n += size.Printed
		}
		return n
	}
	// away breaks the connection in some way, waits until more was printed meanwhile, and mends it: all of it must come.
	away := func(what string, breaks, mends func()) {
		t.Helper()
		live("live")
		shown, before := steps(), printed()
		breaks()
		live("lost")
		pgtest.Eventually(t, pagetest.Patience, func() bool { return printed() > before+30 }, "the job to print")
		mends()
		live("live")
		b.WaitUntil(shownSteps + fmt.Sprintf(` > %d`, shown+8))
		if n := steps(); n <= shown {
			t.Errorf("%s: %d steps after %d", what, n, shown)
		}
	}
	b.WaitFor(".log", "step 3")
	away("the network", line.Cut, func() { line.Mend(s.Server.URL()) })
	away("the server", func() {
		if err := s.Server.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}, func() {
		if err := s.Server.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		line.Mend(s.Server.URL())
	})
	away("a connection that is silent", func() {
		// The page's patience, 40 s, is a second for connections that are made from here on.
		b.Eval(`(window.later = setTimeout, window.setTimeout = (f, ms) => later(f, ms > 30000 ? 1000 : ms), "")`)
		line.Cut()
		live("lost")
		line.Mend(s.Server.URL())
		live("live")
		line.Stall()
		line.Mend("127.0.0.1:1") // where nobody listens
	}, func() {
		b.Eval(`(window.setTimeout = later, "")`)
		line.Mend(s.Server.URL())
	})
	if _, err := s.Jobs.JobCancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	b.WaitFor("#now", "cancelled")
	b.WaitUntil(`document.querySelector(".log").dataset.liveState === "ended"`)
	steps()
	if b.Eval(`window.sameDocument`) != "true" {
		t.Error("the page was loaded once more")
	}
}

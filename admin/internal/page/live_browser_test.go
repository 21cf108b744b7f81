package page_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/admin/internal/page/pagetest"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/jobs/flow/flowtest"
)

// offers waits until what a page offers to do is these buttons, in order.
func offers(b *pagetest.Browser, selector, buttons string) {
	b.WaitUntil(fmt.Sprintf(`[...document.querySelectorAll(%q)].map((e) => e.innerText).join("|") === %q`, selector, buttons))
}

// A job's page that stays open offers what can be done in the state it is in, and shows the log of the newest run.
func TestJobPageStaysTrue(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{Passwords: true, Jobs: pagetest.Working()})
	id := s.Insert(pagetest.Task{Wait: true}, &river.InsertOpts{ScheduledAt: time.Now().Add(time.Hour)})
	b := s.Browser("admin")
	b.Go(fmt.Sprintf("/jobs/%d", id))
	b.Eval(`window.sameDocument = true`)
	const acts = "#acts button, #acts a.button"
	offers(b, acts, "Cancel|Run now|Reschedule...|Change...|Enqueue one like it...|Delete...")
	if got := b.Eval(`document.querySelectorAll(".log").length`); got != "0" {
		t.Error("a job that never ran shows a log")
	}
	again := func() {
		t.Helper()
		if _, err := s.Jobs.JobRetry(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		s.WaitState(id, rivertype.JobStateRunning)
	}
	cancel := func() {
		t.Helper()
		if _, err := s.Jobs.JobCancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		s.WaitState(id, rivertype.JobStateCancelled)
	}
	again()
	offers(b, acts, "Cancel|Change...|Enqueue one like it...")
	b.WaitFor("#lastlog", "Log of run 1")
	b.WaitFor(".log", "step 2")
	b.WaitFor("#lastlog", "has not ended")
	cancel()
	offers(b, acts, "Run again|Enqueue one like it...|Delete...|Erase...")
	b.WaitUntil(`!document.querySelector("#lastlog").innerText.includes("has not ended")`)
	b.WaitFor(".log", "step 1")
	again()
	offers(b, acts, "Cancel|Change...|Enqueue one like it...")
	b.WaitUntil(`/Log of run [2-9]/.test(document.querySelector("#lastlog").innerText)`)
	b.WaitFor(".log", "step 3")
	if b.Eval(`window.sameDocument`) != "true" {
		t.Error("the page was loaded once more")
	}
	cancel()
	offers(b, acts, "Run again|Enqueue one like it...|Delete...|Erase...")
}

// A live part that changes leaves the keyboard where it is, and what the reader has selected.
func TestLivePartsKeepTheReadersPlace(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{Passwords: true})
	ready := 0
	insert := func() {
		t.Helper()
		for _, queue := range []string{"mail", "reports", "sums"} {
			s.Insert(pagetest.Task{}, &river.InsertOpts{Queue: queue})
			ready++
		}
	}
	insert()
	b := s.Browser("viewer")
	b.Go("/")
	const focused, tile = `document.activeElement.getAttribute("href")`, `document.querySelector("#figures .tiles b").innerText`
	shows := func() { b.WaitUntil(fmt.Sprintf(`%s === "%d"`, tile, ready)) }
	shows()
	b.Eval(`document.querySelector('#figures a[href="/jobs?queue=reports"]').focus()`)
	insert()
	shows()
	if got := b.Eval(focused); got != "/jobs?queue=reports" {
		t.Errorf("after a change the focus is at %s", got)
	}
	// With a selection the part stays as it is until it ends.
	b.Eval(`getSelection().selectAllChildren(document.querySelector("#figures h2"))`)
	b.Eval(`new MutationObserver(() => { window.changed = true; }).observe(document.querySelector("#figures"), {childList: true})`)
	was := ready
	insert()
	b.WaitUntil(`document.querySelector("#figures").dataset.waits === ""`)
	if got := b.Eval(tile); got != fmt.Sprint(was) || b.Eval(`String(window.changed)`) != "undefined" || b.Eval(`getSelection().toString()`) == "" {
		t.Errorf("the part changed under a selection: %s ready, %s", got, b.Eval(`getSelection().toString()`))
	}
	b.Eval(`getSelection().removeAllRanges()`)
	shows()
}

// A run's page and a node's offer what can be done as they stand, but take nothing away from somebody who is choosing.
func TestRunPageStaysTrue(t *testing.T) {
	t.Parallel()
	h := newHouse(t, pagetest.Options{Passwords: true})
	night := flow.New("nightly")
	night.Job("load", flowtest.Args{})
	night.Job("report", flowtest.Args{}).After("load")
	h.push(t, "etl", night)
	open := h.wait("load")
	id := h.start(t, "etl", "nightly", flow.Options{})
	h.status(t, id, "load", "RUNNING")
	run, node := h.Browser("admin"), h.Browser("admin")
	run.Go(fmt.Sprintf("/runs/%d", id))
	node.Go(fmt.Sprintf("/runs/%d/nodes/0", id))
	const acts = "#acts button, #acts a.button"
	offers(run, acts, "Pause|Kill")
	node.WaitFor("#node", "RUNNING")
	node.WaitFor("#node", "has not ended")
	if err := h.Flows.Pause(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	offers(run, acts, "Resume|Kill")
	run.ClickText("Resume")
	offers(run, acts, "Pause|Kill")
	run.Eval(`window.sameDocument = true`)
	open()
	h.ended(t, id, "SUCCEEDED")
	offers(run, acts, "Start one like it")
	node.WaitFor("#node", "SUCCEEDED")
	node.WaitUntil(`!document.querySelector("#node").innerText.includes("has not ended")`)
	offers(node, "#node > .row .button", "Run from here once more")
	// Who has ticked something keeps it until it is let go of.
	run.Click(`#chosen tbody input[type="checkbox"]`)
	open = h.wait("report")
	defer open()
	if err := h.Flows.Rerun(t.Context(), id, "report"); err != nil {
		t.Fatal(err)
	}
	run.WaitFor("#head", "RUNNING")
	if run.Eval(`document.querySelectorAll("#chosen input:checked").length`) != "1" {
		t.Error("what was ticked is gone")
	}
	run.Click(`#chosen tbody input[type="checkbox"]`)
	offers(run, acts, "Pause|Kill")
	run.WaitUntil(`document.querySelector("#node-table").dataset.liveState === "live"`)
	if run.Eval(`window.sameDocument`) != "true" {
		t.Error("the page was loaded once more")
	}
}

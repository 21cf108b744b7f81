package page_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/peltonq/pelton/admin/internal/page/pagetest"
	"github.com/peltonq/pelton/jobs/flow"
)

// piecesWait has the pieces of a search wait until the test lets them go. The page's clock stands still, so that its time is never up, however long they take.
const piecesWait = `(() => {
	const real = fetch;
	Date.now = () => 0;
	window.pieces = 0;
	window.let = sessionStorage.let === "go";
	window.fetch = async (url, options) => {
		if (String(url).includes("further=")) {
			window.pieces++;
			while (!window.let && !options.signal.aborted) await new Promise((r) => setTimeout(r, 10));
		}
		return real(url, options);
	};
})()`

// A search that has not filled its page goes on by itself, stops when it is told to, and goes on from there when it is asked to: each job is found once.
func TestSearchInABrowser(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{Passwords: true})
	// The 70 oldest of so many jobs that no first answer looks at all of them.
	s.Exec(`INSERT INTO pelton.job (id, kind, args)
		SELECT ((extract(epoch FROM now() - '2024-01-01Z'::timestamptz)::bigint - 3600) << 24) + n, 'task',
			CASE WHEN n <= 70 THEN '{"note": "needle"}'::jsonb ELSE '{"note": "hay"}' END
		FROM generate_series(1, 100000) n`)
	s.Exec(`ANALYZE pelton.job`)
	b := s.Browser("admin")
	b.Script(piecesWait)
	const rows = `document.querySelectorAll("#found tr[data-found]").length`
	b.Go("/jobs?args=needle")
	b.WaitFor("#found", "No job found so far.")
	b.WaitFor("#further", "searching: 0 found, back to ")
	b.WaitUntil(`window.pieces === 1`)
	b.ClickText("Stop")
	b.WaitFor("#further", "stopped")
	b.WaitFor("#why", "; stopped")
	if got := b.Eval(`document.querySelector("#further button").hidden + " " + window.pieces + " " + ` + rows); got != "true 1 0" {
		t.Errorf("after the stop: %s", got)
	}
	// Without scripts the link would be all there is; with them, its page goes on by itself too.
	b.Eval(`(sessionStorage.let = "go", "")`)
	b.ClickText("Search further back")
	b.WaitUntil(rows + ` === 50`)
	if got := b.Eval(`location.search.includes("further=1")`); got != "true" {
		t.Errorf("the link leads to %s", b.Path())
	}
	const ids = `[...document.querySelectorAll("#found tr[data-found] th a")].map((a) => a.innerText)`
	first := b.Eval(ids + `.join()`)
	if got := b.Eval(`new Set(` + ids + `).size`); got != "50" {
		t.Errorf("of 50 jobs %s are different", got)
	}
	b.Eval(`(window.old = true, (document.querySelector("#pages a[href*=after]") ?? document.querySelector("#further a")).click(), "")`)
	b.WaitUntil(`!window.old && ` + rows + ` === 20 && !document.querySelector("#further")`)
	b.WaitFor("#why", "which is all there is")
	if got := b.Eval(`(() => { const first = new Set("` + first + `".split(",")); return ` + ids + `.filter((id) => first.has(id)).length; })()`); got != "0" {
		t.Errorf("%s jobs are on both pages", got)
	}
}

// A search in logs goes on by itself as one for jobs does: what is near the end of a long log is found without a click, each line once. It can be
// stopped, and its link, which is all there is without scripts, goes on.
func TestLogSearchInABrowser(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{Passwords: true})
	job, run := longLog(t, s)
	b := s.Browser("admin")
	b.Script(piecesWait)
	const lines = `document.querySelectorAll("#found [data-found]").length`
	for _, path := range []string{fmt.Sprintf("/jobs/%d/log?q=needle", job), fmt.Sprintf("/runs/%d/logs?q=needle", run)} {
		b.Eval(`(sessionStorage.removeItem("let"), "")`)
		b.Go(path)
		b.WaitFor("#found", "Nothing found so far.")
		b.WaitFor("#further", "searching: 0 found, in ")
		b.WaitUntil(`window.pieces === 1`)
		before := b.Text("#searched")
		b.ClickText("Stop")
		b.WaitFor("#why", "; stopped")
		if got := b.Eval(`document.querySelector("#further button").hidden + " " + window.pieces + " " + ` + lines); got != "true 1 0" {
			t.Errorf("%s: after the stop: %s", path, got)
		}
		// What has been looked at when the link's page comes is not looked at again, and its page goes on by itself too.
		b.Eval(`(sessionStorage.let = "go", "")`)
		b.ClickText("Search further")
		b.WaitFor("#why", "which is all there is")
		if got := b.Text("#found"); !strings.Contains(got, "the needle, first line") || !strings.Contains(got, "the Needle, last line") || b.Eval(lines) != "2" || b.Text("#count") != "2" {
			t.Errorf("%s: found %s: %s", path, b.Text("#count"), got)
		}
		if now := b.Text("#searched"); now == before || !strings.Contains(now, "64.0 MiB") {
			t.Errorf("%s: looked at %s, before at %s", path, now, before)
		}
		// Opened once more, all comes without a click.
		b.Go(path)
		b.WaitFor("#why", "which is all there is")
		if got := b.Eval(lines + ` + " " + document.querySelectorAll("#found mark").length + " " + (window.pieces > 0) + " " + !document.querySelector("#further")`); got != "2 2 true true" {
			t.Errorf("%s: %s", path, got)
		}
		b.Go(strings.Replace(path, "needle", "nothing+like+it", 1))
		b.WaitFor("#why", "which is all there is")
		if got := b.Text("#found"); !strings.HasSuffix(strings.TrimSpace(got), "Nothing found.") {
			t.Errorf("%s: %s", path, got)
		}
	}
}

// longLog makes a job that printed 64 MiB, with needles near the end, one of them over the border of two chunks, and a run of a flow that has it as a node's.
func longLog(t *testing.T, s *pagetest.Site) (job, run int64) {
	t.Helper()
	id := s.Insert(pagetest.Task{}, nil)
	s.Exec(`INSERT INTO pelton.job_attempt (job_id, run, outcome, attempt) VALUES ($1, 1, 'completed', 1)`, id)
	s.Exec(`INSERT INTO pelton.job_log (id, job_id, run, stream, pos, at, data)
		SELECT $1::bigint + 1 + n, $1::bigint, 1, 'o', n * 65536::bigint, now(), convert_to(CASE n
			WHEN 990 THEN repeat(repeat('x', 63) || E'\n', 1023) || E'this is the                                              the nee'
			WHEN 991 THEN E'dle, first line\n' || repeat(repeat('x', 63) || E'\n', 1023) || repeat('x', 47) || E'\n'
			ELSE repeat(repeat('x', 63) || E'\n', 1024) END, 'UTF8')
		FROM generate_series(0, 1023) n`, id)
	s.Exec(`INSERT INTO pelton.job_log (id, job_id, run, stream, pos, at, data) VALUES ($1::bigint + 2000, $1::bigint, 1, 'o', 1024 * 65536, now(), 'the Needle, last line')`, id)
	b := flow.New("long")
	b.Noop("print")
	built, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Flows.PushFlows(t.Context(), "etl", built); err != nil {
		t.Fatal(err)
	}
	if run, err = s.Flows.Run(t.Context(), flow.RunParams{Project: "etl", Flow: "long"}); err != nil {
		t.Fatal(err)
	}
	s.Exec(`UPDATE pelton.flow_node SET job_id = $1 WHERE run_id = $2`, id, run)
	return id, run
}

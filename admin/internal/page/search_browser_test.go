package page_test

import (
	"testing"

	"github.com/peltonq/pelton/admin/internal/page/pagetest"
)

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
	b.Script(`(() => { // pieces of a search wait until the test lets them go
		const real = fetch;
		window.pieces = 0;
		window.let = sessionStorage.let === "go";
		window.fetch = async (url, options) => {
			if (String(url).includes("further=")) {
				window.pieces++;
				while (!window.let && !options.signal.aborted) await new Promise((r) => setTimeout(r, 10));
			}
			return real(url, options);
		};
	})()`)
	const rows = `document.querySelectorAll("#found tr[data-job]").length`
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
	const ids = `[...document.querySelectorAll("#found tr[data-job] th a")].map((a) => a.innerText)`
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

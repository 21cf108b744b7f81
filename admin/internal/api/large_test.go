package api_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/document"
	"github.com/peltonq/pelton/jobs/flow"
)

// A page of a list whose items are large ends early, and the cursors lead to all of them.
func TestLargeItemsMakeShortPages(t *testing.T) {
	t.Parallel()
	s := start(t)
	const count, each = 50, 200 << 10
	large := map[string]string{"text": strings.Repeat("x", each)}
	var many []river.InsertManyParams
	for range count {
		many = append(many, river.InsertManyParams{Args: rawArgs{"big", large}})
	}
	if _, err := s.jobs.InsertMany(t.Context(), many); err != nil {
		t.Fatal(err)
	}
	_, err := s.pool.Exec(t.Context(), `
		INSERT INTO pelton.job_dead (job_id, created_at, priority, max_attempts, attempt, reason, kind, queue, args, attempts)
		SELECT j.id, now(), 1, 1, 1, 'exhausted', j.kind, j.queue, j.args, '[]' FROM pelton.job j`)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.pool.Exec(t.Context(), `
		INSERT INTO pelton.audit (action, target, after) SELECT 'large', i::text, json_build_object('text', repeat('x', $2))
		FROM generate_series(1, $1) i`, count, each)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 25 {
		name := "large" + string(rune('a'+i))
		do[json.RawMessage](s, access.Admin, 200, "PUT", "/api/v1/schedules/"+name, map[string]any{
			"name": name, "cron": "0 4 * * *", "job": map[string]any{"kind": "noop", "args": large},
		})
	}
	for path, want := range map[string]int{
		"/api/v1/jobs?kind=big&limit=1000":           count,
		"/api/v1/jobs?kind=big&limit=1000&desc=true": count,
		"/api/v1/jobs?order=scheduled_at&limit=1000": count,
		"/api/v1/dead?limit=1000":                    count,
		"/api/v1/audit?action=large&limit=1000":      count,
		"/api/v1/schedules?prefix=large&limit=1000":  25,
		"/api/v1/jobs?kind=big&limit=3":              count,
		"/api/v1/dead?limit=3":                       count,
	} {
		seen, pages := map[string]bool{}, 0
		for cursor := "start"; cursor != "" && pages <= count; pages++ {
			to := path
			if cursor != "start" {
				to += "&cursor=" + url.QueryEscape(cursor)
			}
			r := s.ask(s.tokens[access.Viewer], "GET", to, nil)
			if len(r.body) > 6<<20 {
				t.Errorf("%s: a page of %d MiB", path, len(r.body)>>20)
			}
			var page struct {
				Items []struct {
					ID    json.Number `json:"id"`
					JobID json.Number `json:"job_id"`
					Name  string      `json:"name"`
				}
				NextCursor string `json:"next_cursor"`
			}
			if err := json.Unmarshal(r.body, &page); err != nil || r.status != 200 {
				t.Fatalf("%s: %d, %v: %.300s", to, r.status, err, r.body)
			}
			if len(page.Items) == 0 && page.NextCursor != "" {
				t.Errorf("%s: an empty page in the middle", to)
			}
			for _, i := range page.Items {
				key := i.ID.String() + i.JobID.String() + i.Name
				if seen[key] {
					t.Errorf("%s: %s twice", path, key)
				}
				seen[key] = true
			}
			cursor = page.NextCursor
		}
		if len(seen) != want {
			t.Errorf("%s: %d items, want %d", path, len(seen), want)
		}
	}
}

// A run's nodes come with outputs up to a bound, and each node with all of its own. Who wants the log of a node's job has no outputs read.
func TestRunWithLargeOutputs(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.push(access.Admin, "sales")
	run := do[struct{ Run int64 }](s, access.Operator, 201, "POST", "/api/v1/projects/sales/flows/etl/runs", map[string]any{}).Run
	const nodes, each = 40, 300 << 10
	_, err := s.pool.Exec(t.Context(), `
		INSERT INTO pelton.flow_node (run_id, no, path, status, job_id, outputs)
		SELECT $1, 2 + n, 'first[' || n || ']', 'SUCCEEDED', 7000 + n, json_build_object('text', repeat('x', $3)) FROM generate_series(1, $2::int) n`, run, nodes, each)
	if err != nil {
		t.Fatal(err)
	}
	at := fmt.Sprintf("/api/v1/runs/%d", run)
	r := s.ask(s.tokens[access.Viewer], "GET", at, nil)
	var detail flow.RunDetail
	if err := json.Unmarshal(r.body, &detail); err != nil || len(r.body) > 5<<20 || len(detail.Nodes) != nodes+2 {
		t.Fatalf("%d: %d bytes, %d nodes, %v", r.status, len(r.body), len(detail.Nodes), err)
	}
	there, left := 0, 0
	for _, n := range detail.Nodes {
		if n.Outputs != nil {
			there++
		}
		if n.LeftOut {
			left++
		}
	}
	if there != 13 || left != nodes-there {
		t.Errorf("%d nodes have their outputs, %d say that they are left out", there, left)
	}
	if n := do[flow.NodeRow](s, access.Viewer, 200, "GET", at+"/node?node=first%5B40%5D", nil); n.Path != "first[40]" || len(n.Outputs) < each || n.LeftOut {
		t.Errorf("%s: %d bytes of outputs", n.Path, len(n.Outputs))
	}
	s.problemOf(s.ask(s.tokens[access.Viewer], "GET", at+"/node?node=third", nil), 404, "not-found", `no node "third"`)
	s.problemOf(s.ask(s.tokens[access.Viewer], "GET", at+"/node", nil), 422, "invalid-request", "missing")
	// From here on whoever reads outputs fails.
	_, err = s.pool.Exec(t.Context(), `
		CREATE FUNCTION pelton.unread(bigint) RETURNS json STABLE LANGUAGE plpgsql AS $$ BEGIN RAISE 'outputs are read'; END $$;
		ALTER TABLE pelton.flow_node RENAME TO flow_node_kept;
		CREATE VIEW pelton.flow_node AS SELECT run_id, no, path, status, job_id, jobs, pelton.unread(run_id) AS outputs FROM pelton.flow_node_kept`)
	if err != nil {
		t.Fatal(err)
	}
	logs := do[page[struct{ Node string }]](s, access.Viewer, 200, "GET", at+"/logs?node=first&limit=30", nil)
	if len(logs.Items) != 30 || logs.Items[0].Node != "first[1]" || logs.NextCursor == "" {
		t.Errorf("logs: %+v", logs)
	}
	if logs = do[page[struct{ Node string }]](s, access.Viewer, 200, "GET", at+"/logs?node=first&cursor="+logs.NextCursor, nil); len(logs.Items) != 10 || logs.NextCursor != "" {
		t.Errorf("logs: %+v", logs)
	}
	for _, below := range []string{"/log", "/log/follow"} {
		s.problemOf(s.ask(s.tokens[access.Viewer], "GET", at+"/jobs/7040"+below, nil), 404, "not-found", "7040")
		s.problemOf(s.ask(s.tokens[access.Viewer], "GET", at+"/jobs/8000"+below, nil), 404, "not-found", "no node with job 8000")
	}
}

// A job that ran very often is shown with its last runs, and all of them are found by cursors. Its logs are found without them.
func TestJobThatRanVeryOften(t *testing.T) {
	t.Parallel()
	s := start(t)
	id := s.enqueue(map[string]any{"kind": "task", "queue": "nobody"})[0]
	const runs, large = 2500, 300 << 10
	_, err := s.pool.Exec(t.Context(), `
		INSERT INTO pelton.job_attempt (job_id, run, outcome, attempt, started_at, output)
		SELECT $1, n, 'snoozed', 0, now(), CASE WHEN n % 100 = 0 THEN json_build_object('text', repeat('x', $3)) END FROM generate_series(1, $2::int) n`, id, runs, large)
	if err == nil {
		_, err = s.pool.Exec(t.Context(), `
			INSERT INTO pelton.job_log (job_id, run, stream, pos, data) SELECT $1, n, stream::"char", 0, convert_to('run ' || n, 'UTF8')
			FROM generate_series(1, $2::int) n, unnest(ARRAY['o', 'e']) stream WHERE n % 5 <> 0`, id, runs)
	}
	if err != nil {
		t.Fatal(err)
	}
	at := fmt.Sprintf("/api/v1/jobs/%d", id)
	job := do[document.JobDetail](s, access.Viewer, 200, "GET", at, nil)
	if len(job.Runs) != 100 || job.RunsLeftOut != runs-100 || job.Runs[0].Run != runs-99 || job.Runs[99].Run != runs || len(job.Logs) != 200 || job.Logs[199].Run != runs-1 || job.Logs[0].Run >= job.Logs[199].Run {
		t.Errorf("%d runs from %d on, %d left out, %d logs", len(job.Runs), job.Runs[0].Run, job.RunsLeftOut, len(job.Logs))
	}
	for path, want := range map[string]int{at + "/runs?limit=1000": runs, at + "/logs?limit=70": runs * 4 / 5} {
		seen, last, pages := 0, runs+1, 0
		for cursor := ""; pages == 0 || cursor != ""; pages++ {
			to := path
			if cursor != "" {
				to += "&cursor=" + cursor
			}
			r := s.ask(s.tokens[access.Viewer], "GET", to, nil)
			var list page[struct{ Run int }]
			if err := json.Unmarshal(r.body, &list); err != nil || r.status != 200 || len(r.body) > 5<<20 || pages > runs {
				t.Fatalf("%s: %d, %d bytes, %v", to, r.status, len(r.body), err)
			}
			for _, item := range list.Items {
				if item.Run > last {
					t.Errorf("%s: run %d after %d", path, item.Run, last)
				}
				if item.Run < last {
					seen++
				}
				last = item.Run
			}
			cursor = list.NextCursor
		}
		if seen != want || pages < 3 {
			t.Errorf("%s: %d runs on %d pages, want %d", path, seen, pages, want)
		}
	}
	for query, want := range map[string]string{"": "", "?run=2499&stream=stdout": "run 2499", "?run=3&stream=stdout": "run 3", "?run=5": ""} {
		if r := s.ask(s.tokens[access.Viewer], "GET", at+"/log"+query, nil); r.status != 200 || string(r.body) != want {
			t.Errorf("log%s: %d %s", query, r.status, r.body)
		}
	}
	s.problemOf(s.ask(s.tokens[access.Viewer], "GET", at+"/log?run=2502", nil), 404, "not-found", "there were 2500")
	if r := s.ask(s.tokens[access.Viewer], "GET", at+"/log/follow?run=2499", nil); !strings.Contains(string(r.body), "run 2499") || !strings.Contains(string(r.body), "event: end") {
		t.Errorf("follow: %s", r.body)
	}
}

// rawArgs are args of a kind.
type rawArgs struct {
	kind string
	args any
}

func (a rawArgs) Kind() string { return a.kind }

// MarshalJSON implements json.Marshaler.
func (a rawArgs) MarshalJSON() ([]byte, error) { return json.Marshal(a.args) }

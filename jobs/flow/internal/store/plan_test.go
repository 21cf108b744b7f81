package store_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/jobs/flow/internal/store"
	"github.com/peltonq/pelton/schema/schematest"
)

// desk reads plans of a store's statements.
type desk struct {
	*store.Store

	t *testing.T
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	return &desk{store.New(schematest.Pool(t), "pelton"), t}
}

func (d *desk) exec(sql string, args ...any) {
	d.t.Helper()
	if _, err := d.Pool.Exec(d.t.Context(), sql, args...); err != nil {
		d.t.Fatal(err)
	}
}

// pin has a snapshot open until the test ends, so that no row that is deleted from now on goes.
func (d *desk) pin() {
	d.t.Helper()
	tx, err := d.Pool.BeginTx(d.t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err == nil {
		_, err = tx.Exec(d.t.Context(), "SELECT FROM pelton.flow_run")
	}
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = tx.Rollback(d.t.Context()) })
}

// planNode is what EXPLAIN says of a part of a statement that was run.
type planNode struct {
	Type  string     `json:"Node Type"`
	Table string     `json:"Relation Name"`
	Rows  float64    `json:"Actual Rows"`
	Loops float64    `json:"Actual Loops"`
	Hit   int        `json:"Shared Hit Blocks"`
	Read  int        `json:"Shared Read Blocks"`
	Plans []planNode `json:"Plans"`
}

// rows of all parts of a type.
func (n planNode) rows(kind string) (sum float64) {
	if n.Type == kind {
		sum = n.Rows * n.Loops
	}
	for _, p := range n.Plans {
		sum += p.rows(kind)
	}
	return sum
}

// reads tells whether a part of a type reads a table.
func (n planNode) reads(kind, table string) bool {
	return n.Type == kind && n.Table == table || slices.ContainsFunc(n.Plans, func(p planNode) bool { return p.reads(kind, table) })
}

// pages runs a statement and returns how many pages it looked at.
func (d *desk) pages(name string, args ...any) int {
	d.t.Helper()
	plan := d.run(name, args...)
	return plan.Hit + plan.Read
}

// run runs a statement and takes back what it did.
func (d *desk) run(name string, args ...any) planNode {
	d.t.Helper()
	tx, err := d.Pool.Begin(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(d.t.Context()) }()
	var text []byte
	if err := tx.QueryRow(d.t.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+d.SQL(name), args...).Scan(&text); err != nil {
		d.t.Fatalf("%s: %v", name, err)
	}
	var plans []struct{ Plan planNode }
	if err := json.Unmarshal(text, &plans); err != nil {
		d.t.Fatal(err)
	}
	return plans[0].Plan
}

// What is read of the reports starts at the floor: those that were applied, and that somebody's snapshot keeps, cost nothing, be it those
// of a thousand runs or of this one.
func TestReportsAreReadFromTheFloor(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.exec(`INSERT INTO pelton.flow_project (name) VALUES ('p')`)
	d.exec(`INSERT INTO pelton.flow_version (project_id, no, pushed_by, format) VALUES (1, 1, 'me', 'code')`)
	d.exec(`INSERT INTO pelton.flow_run (version_id, project_id, flow, status, created_by, options)
		SELECT 1, 1, 'f', 'RUNNING', 'me', '{}' FROM generate_series(1, 10)`)
	d.exec(`INSERT INTO pelton.flow_node (run_id, no, path, status, job_id) SELECT r, n, 'n' || n, 'QUEUED', 100 * r + n
		FROM generate_series(1, 10) r, generate_series(1, 10) n`)
	d.exec(`INSERT INTO pelton.job (id, kind, args) SELECT job_id, 'noop', '{}' FROM pelton.flow_node`)
	d.exec(`INSERT INTO pelton.flow_timer (run_id, node, what, at) SELECT r, -1, 'sla', now() + interval '1 hour' FROM generate_series(1, 10) r`)
	d.exec(`VACUUM ANALYZE`)
	d.pin()
	const dead = 30_000
	d.exec(`INSERT INTO pelton.flow_report (run_id, node, job_id, outcome) SELECT 1 + g % 10, 0, g, 'completed' FROM generate_series(1, $1::int) g`, dead)
	d.exec(`DELETE FROM pelton.flow_report`)
	d.exec(`INSERT INTO pelton.flow_timer (run_id, node, what, at) SELECT g, 0, 'again', now() - interval '1 hour' FROM generate_series(1, $1::int) g`, dead)
	d.exec(`DELETE FROM pelton.flow_timer WHERE node = 0`)
	d.exec(`INSERT INTO pelton.flow_run (version_id, project_id, flow, status, created_by, options)
		SELECT 1, 1, 'e', 'RUNNING', 'me', '{}' FROM generate_series(1, 5000)`)
	d.exec(`UPDATE pelton.flow_run SET ended_at = now() WHERE flow = 'e'`)
	d.exec(`VACUUM pelton.flow_report, pelton.flow_timer, pelton.flow_run`) // takes none of them, and notes how few rows live
	d.exec(`INSERT INTO pelton.flow_report (run_id, node, job_id, outcome) SELECT r, 0, 0, 'completed' FROM generate_series(1, 10) r`)
	for name, args := range map[string]func(floor int64) []any{
		"look":          func(floor int64) []any { return []any{floor, floor == 0} },
		"waiting":       func(floor int64) []any { return []any{floor, 1000} },
		"reports":       func(floor int64) []any { return []any{7, 1000, floor} },
		"asked":         func(floor int64) []any { return []any{7, floor} },
		"report_missed": func(floor int64) []any { return []any{floor} },
	} {
		if all, few := d.pages(name, args(0)...), d.pages(name, args(dead+1)...); few > 50 || all < few+100 {
			t.Errorf("%s looks at %d pages from the floor on, and %d without one", name, few, all)
		} else {
			t.Logf("%s: %d pages from the floor on, %d without one", name, few, all)
		}
	}
	var places []string
	err := d.Pool.QueryRow(t.Context(), `SELECT array_agg(ctid::text) FROM pelton.flow_report WHERE id > $1`, dead).Scan(&places)
	if err != nil || len(places) != 10 {
		t.Fatal(places, err)
	}
	if n := d.pages("delete_reports", places); n > 30 {
		t.Errorf("delete_reports looks at %d pages for %d reports", n, len(places))
	}
}

// A page of the flows, or of the versions of a project, costs what it shows, wherever in the list it is.
func TestPagesOfFlowsAreReadByTheirKeys(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.exec(`INSERT INTO pelton.flow_project (name) SELECT 'p' || to_char(g, 'FM000') FROM generate_series(1, 300) g`)
	d.exec(`INSERT INTO pelton.flow_version (project_id, no, pushed_by, format) SELECT p.id, n, 'me', 'code'
		FROM pelton.flow_project p, generate_series(1, 5) n ORDER BY n, p.id`)
	d.exec(`INSERT INTO pelton.flow_version (project_id, no, pushed_by, format) SELECT 150, n, 'me', 'code' FROM generate_series(6, 5000) n`)
	d.exec(`INSERT INTO pelton.flow (version_id, name, nodes, graph) SELECT v.id, 'f' || to_char(g, 'FM0000'), 1, json_build_object('x', repeat('x', 400))
		FROM pelton.flow_version v, generate_series(1, CASE v.no WHEN 5000 THEN 5000 ELSE 10 END) g WHERE v.no IN (5, 5000)`)
	d.exec(`INSERT INTO pelton.flow_run (version_id, project_id, flow, status, created_by, options, ended_at)
		SELECT 1, CASE g % 2 WHEN 0 THEN 150 ELSE 1 + g % 300 END, 'f0001', 'SUCCEEDED', 'me', '{}', now() FROM generate_series(1, 10000) g`)
	d.exec(`VACUUM ANALYZE`)
	for name, args := range map[string][]any{
		"flows":                           {"", "", "", 11, nil},
		"flows behind most":               {"", "p290", "f0003", 11, nil},
		"flows of the largest":            {"p150", "", "", 11, nil},
		"flows within the largest":        {"", "p150", "f3000", 11, nil},
		"flows of two":                    {"", "", "", 11, []string{"p007", "p150"}},
		"versions_before of the largest":  {"p150", 1 << 30, 11},
		"versions_before far back":        {"p150", 1000, 11},
		"versions_before of one with few": {"p299", 1 << 30, 11},
	} {
		statement, _, _ := strings.Cut(name, " ")
		if n := d.pages(statement, args...); n > 100 {
			t.Errorf("%s: a page of 11 looks at %d pages", name, n)
		} else {
			t.Logf("%s: %d pages", name, n)
		}
	}
}

// Whoever looks at a run reads no more of the leases than may hold its jobs.
func TestLeasesReadToShowARun(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.exec(`INSERT INTO pelton.flow_node (run_id, no, path, status, job_id, queued_at) VALUES
		(1, 0, 'a', 'SUCCEEDED', 1, now() - interval '2 hours'),
		(2, 0, 'a', 'SUCCEEDED', 2, now() - interval '2 hours'), (2, 1, 'b', 'QUEUED', 3, now()), (2, 2, 'c', 'QUEUED', 4, now())`)
	d.exec(`INSERT INTO pelton.job_lease (executor, no, claimed_at, job_ids)
		SELECT 1, g, now() - interval '1 hour', ARRAY(SELECT generate_series(1000 * g, 1000 * g + 99)) FROM generate_series(1, 200) g`)
	d.exec(`INSERT INTO pelton.job_lease (executor, no, job_ids) VALUES (2, 1, ARRAY[3, 5, 6])`)
	d.exec(`ANALYZE`)
	for run, want := range map[int64]float64{1: 0, 2: 3} {
		plan := d.run("shown_nodes", run, "", -1)
		if n := plan.rows("Function Scan") + plan.rows("ProjectSet"); n != want {
			t.Errorf("run %d: %v jobs of leases are read, want %v", run, n, want)
		}
	}
	nodes, err := d.ShownNodes(t.Context(), 2, "", -1)
	if err != nil || len(nodes) != 3 || nodes[1].Status != "RUNNING" || nodes[2].Status != "QUEUED" {
		t.Errorf("shown are %+v (%v)", nodes, err)
	}
}

// Of nodes with large outputs no more are read than are asked for: of a run that is looked at in parts those of its first nodes, and none to find a job of
// it. Outputs that take little on disk count by what they are unpacked.
func TestOutputsAreReadWithinABound(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	const nodes, each = 100, 16 << 10
	d.exec(`INSERT INTO pelton.flow_node (run_id, no, path, status, job_id, jobs, outputs, reason)
		SELECT 1, n, 'n' || n, 'SUCCEEDED', 100 + n, ARRAY[1000 + n], json_build_object('x', (SELECT string_agg(md5(random()::text), '') FROM generate_series(1, $2 / 32 + 0 * n))), repeat('r', 20000)
		FROM generate_series(0, $1::int - 1) n`, nodes, each)
	d.exec(`INSERT INTO pelton.flow_node (run_id, no, path, status, job_id, outputs)
		SELECT 2, n, 'n' || n, 'SUCCEEDED', 500 + n, json_build_object('x', repeat('x', $2)) FROM generate_series(0, $1::int - 1) n`, nodes, each)
	d.exec(`VACUUM ANALYZE pelton.flow_node`)
	whole := d.pages("shown_nodes", 1, "", 2*nodes*each) // to see how long they are they must be unpacked
	for name, args := range map[string][]any{
		"has_job": {1, 1000 + nodes - 1}, "node_jobs": {1, "", 0, nodes}, "shown_nodes": {1, "", 0}, "shown_nodes of few bytes": {1, "", 10 * each},
	} {
		statement, _, _ := strings.Cut(name, " ")
		if n := d.pages(statement, args...); n > whole/5 {
			t.Errorf("%s looks at %d pages, all outputs are %d", name, n, whole)
		}
	}
	for run := range int64(2) {
		list, err := d.ShownNodes(t.Context(), run+1, "", 10*each+each/2)
		if err != nil || len(list) != nodes {
			t.Fatal(len(list), err)
		}
		for i, n := range list {
			if got := len(n.Outputs) > 0; got != (i < 10) || n.LeftOut == got || n.Reason != nil && len(*n.Reason) != 5000 {
				t.Fatalf("run %d, node %d: %d bytes of outputs, left out %t", run+1, i, len(n.Outputs), n.LeftOut)
			}
		}
		if list, err = d.ShownNodes(t.Context(), run+1, "n7", store.AllOutputs); err != nil || len(list) != 1 || list[0].No != 7 || len(list[0].Outputs) < each || list[0].LeftOut {
			t.Errorf("run %d, node 7: %v", run+1, err)
		}
	}
	if jobs, err := d.NodeJobs(t.Context(), 1, "n5", 105, 10); err != nil || len(jobs) != 1 || jobs[0].ID != 1005 {
		t.Errorf("%v, %v", jobs, err)
	}
	for job, want := range map[int64]bool{100: true, 1000 + nodes - 1: true, 500: false} {
		if got, err := d.HasJob(t.Context(), 1, job); err != nil || got != want {
			t.Errorf("job %d of run 1: %t, %v", job, got, err)
		}
	}
}

// Nodes are swept by their key, also if few runs have most of them, and each piece looks at its own alone.
func TestASweepReadsItsNodesOnly(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.exec(`INSERT INTO pelton.flow_node (run_id, no, path, status) SELECT r, n, 'n' || n, 'SUCCEEDED'
		FROM generate_series(1, 10) r, generate_series(0, 4999) n`)
	d.exec(`ANALYZE`)
	d.pin()
	d.exec(`INSERT INTO pelton.flow_swept (run_id) SELECT generate_series(1, 9)`)
	for range 20 {
		if _, err := d.SweepNodes(t.Context(), 900); err != nil {
			t.Fatal(err)
		}
	}
	plan := d.run("sweep_nodes", 90)
	if plan.reads("Seq Scan", "flow_node") || !plan.reads("Index Scan", "flow_node") {
		t.Errorf("the nodes are not read by their key: %+v", plan)
	}
	if pages := plan.Hit + plan.Read; pages > 1500 {
		t.Errorf("90 nodes took %d pages", pages)
	}
}

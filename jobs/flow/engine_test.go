package flow_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/schema/schematest"
)

// shed is a client that has not started, with two runs: one of many nodes, and after it one of a single node. No node has a job.
type shed struct {
	t           *testing.T
	pool        *pgxpool.Pool
	flows       *flow.Client
	giant, tiny int64

	mu  sync.Mutex
	log bytes.Buffer
}

func newShed(t *testing.T, nodes int) *shed {
	t.Helper()
	s := &shed{t: t, pool: schematest.Pool(t)}
	queue, err := jobs.NewClient(s.pool, &jobs.Config{})
	must(t, err)
	s.flows, err = flow.NewClient(s.pool, queue, &flow.Config{Logger: slog.New(slog.NewTextHandler(s, nil)), Retention: time.Hour})
	must(t, err)
	var giant strings.Builder
	giant.WriteString("nodes:\n")
	for i := range nodes {
		fmt.Fprintf(&giant, "  - {name: n%d, type: noop}\n", i)
	}
	_, err = s.flows.Push(t.Context(), "p", write(t, map[string]string{
		"p.project": "azkaban-flow-version: 2.0\n", "giant.flow": giant.String(), "tiny.flow": "nodes:\n  - {name: n, type: noop}\n",
	}))
	must(t, err)
	s.giant, err = s.flows.Run(t.Context(), flow.RunParams{Project: "p", Flow: "giant"})
	must(t, err)
	s.tiny, err = s.flows.Run(t.Context(), flow.RunParams{Project: "p", Flow: "tiny"})
	must(t, err)
	return s
}

// Write takes the log.
func (s *shed) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(p)
}

func (s *shed) logged() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

func (s *shed) start() {
	s.flows.Start(s.t.Context())
	s.t.Cleanup(s.flows.Stop)
}

func (s *shed) ended(run int64) *flow.RunDetail {
	s.t.Helper()
	detail, err := s.flows.Ended(s.t.Context(), run, nil)
	must(s.t, err)
	equal(s.t, "status", detail.Status, "SUCCEEDED")
	return detail
}

// A run of many nodes is advanced piece by piece, and one that came after it gets its turn in between.
func TestAGiantGivesWay(t *testing.T) {
	t.Parallel()
	s := newShed(t, 1000)
	s.flows.Limit(1, 100)
	s.start()
	tiny, giant := s.ended(s.tiny), s.ended(s.giant)
	if !tiny.EndedAt.Before(*giant.EndedAt) {
		t.Errorf("the tiny run ended at %v, the giant at %v", tiny.EndedAt, giant.EndedAt)
	}
	var steps int
	must(t, s.pool.QueryRow(t.Context(), `SELECT step FROM pelton.flow_run WHERE id = $1`, s.giant).Scan(&steps))
	if steps < 10 {
		t.Errorf("the giant ended in %d steps", steps)
	}
}

// A step of one run that takes its time, here because somebody has locked a node, delays no other run.
func TestAStepDelaysNoOtherRun(t *testing.T) {
	t.Parallel()
	s := newShed(t, 10)
	s.flows.Limit(2, 100)
	tx, err := s.pool.Begin(t.Context())
	must(t, err)
	defer func() { _ = tx.Rollback(t.Context()) }()
	_, err = tx.Exec(t.Context(), `SELECT FROM pelton.flow_node WHERE run_id = $1 FOR UPDATE`, s.giant)
	must(t, err)
	s.start()
	pgtest.Eventually(t, patience, func() bool {
		err := pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error {
			var id int64
			return tx.QueryRow(t.Context(), `SELECT id FROM pelton.flow_run WHERE id = $1 FOR UPDATE SKIP LOCKED`, s.giant).Scan(&id)
		})
		return err != nil
	}, "nobody advances the giant")
	s.ended(s.tiny)
	if text := s.logged(); text != "" {
		t.Errorf("the giant was given up meanwhile: %s", text)
	}
	must(t, tx.Rollback(t.Context()))
	s.ended(s.giant)
}

// The floor under the reports rises as runs are advanced, also while somebody's snapshot keeps the applied ones in the table.
func TestTheFloorUnderReportsRises(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	pin, err := h.pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	must(t, err)
	defer func() { _ = pin.Rollback(t.Context()) }()
	_, err = pin.Exec(t.Context(), `SELECT FROM pelton.flow_report`)
	must(t, err)
	h.push(yaml(t, "nodes:\n  - {name: n, type: test, config: {fail: false, seconds: 0}, for_each: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}\n"))
	last := int64(0)
	pgtest.Eventually(t, patience, func() bool {
		h.ended(h.start("f", flow.Options{}))
		rose := h.flows.Floor() > last && last > 0
		last = max(last, h.flows.Floor())
		return rose
	}, "the floor to rise twice")
}

// Old runs are swept beside the runs that are advanced: here somebody holds up the sweep.
func TestTheSweepDelaysNoRun(t *testing.T) {
	t.Parallel()
	s := newShed(t, 1)
	s.flows.Start(t.Context())
	s.ended(s.giant)
	s.ended(s.tiny)
	pgtest.Eventually(t, patience, func() bool { // the steps that look for the next runs, which would lock this one
		var reports int
		must(t, s.pool.QueryRow(t.Context(), `SELECT count(*) FROM pelton.flow_report`).Scan(&reports))
		return reports == 0
	}, "all reports to be applied")
	s.flows.Stop()
	_, err := s.pool.Exec(t.Context(), `UPDATE pelton.flow_run SET ended_at = ended_at - interval '2 hours' WHERE id = $1`, s.giant)
	must(t, err)
	tx, err := s.pool.Begin(t.Context())
	must(t, err)
	defer func() { _ = tx.Rollback(t.Context()) }()
	_, err = tx.Exec(t.Context(), `SELECT FROM pelton.flow_node WHERE run_id = $1 FOR UPDATE`, s.giant)
	must(t, err)
	s.start()
	left := func() (runs, nodes int) {
		must(t, s.pool.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM pelton.flow_run WHERE id = $1),
			(SELECT count(*) FROM pelton.flow_node WHERE run_id = $1)`, s.giant).Scan(&runs, &nodes))
		return runs, nodes
	}
	pgtest.Eventually(t, patience, func() bool { runs, nodes := left(); return runs == 0 && nodes == 1 }, "the run to be swept")
	run, err := s.flows.Run(t.Context(), flow.RunParams{Project: "p", Flow: "tiny"})
	must(t, err)
	s.ended(run)
	must(t, tx.Rollback(t.Context()))
	pgtest.Eventually(t, patience, func() bool { _, nodes := left(); return nodes == 0 }, "the nodes to be swept")
}

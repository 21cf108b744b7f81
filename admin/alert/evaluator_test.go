package alert_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/admin/alert"
	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/schema/schematest"
)

func containsAll(text string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(text, p) {
			return false
		}
	}
	return true
}

// old is a rule that is bad as soon as a job waits.
func old(change func(*alert.Rule)) alert.Rule {
	return rule(alert.OldestAge, func(r *alert.Rule) {
		r.OverAge = 1
		if change != nil {
			change(r)
		}
	})
}

// Many evaluate at once, and each change is told once; when it recovers too.
func TestManyEvaluators(t *testing.T) {
	t.Parallel()
	f := file(old(nil))
	h := newHouse(t, f)
	var evaluators []*alert.Evaluator
	for range 6 {
		evaluators = append(evaluators, h.evaluator(f, nil))
	}
	var did atomic.Int64
	all := func() {
		var group sync.WaitGroup
		for _, e := range evaluators {
			group.Go(func() {
				for range 10 {
					done, err := e.Evaluate(t.Context())
					if err != nil {
						t.Error(err)
					}
					if done {
						did.Add(1)
					}
				}
			})
		}
		group.Wait()
	}
	for i := range 3 {
		queue := fmt.Sprintf("q%d", i)
		id := h.insert(1, false, river.InsertOpts{Queue: queue})
		all()
		if got := h.notices(); !strings.HasPrefix(got, "firing ops oldest_age: queue "+queue) || strings.Contains(got, "\n") {
			t.Fatalf("%d evaluators enqueue\n%s", len(evaluators), got)
		}
		h.exec(`DELETE FROM pelton.job_ready WHERE $1 = ANY (job_ids)`, id)
		all()
		if got := h.notices(); !strings.HasPrefix(got, "recovered ops oldest_age recovered: queue "+queue) || strings.Contains(got, "\n") {
			t.Fatalf("%d evaluators enqueue\n%s", len(evaluators), got)
		}
	}
	if did.Load() < 6 {
		t.Errorf("the rules were evaluated %d times", did.Load())
	}
}

// Who has the turn keeps it while it evaluates; the others do not wait, and have it as soon as that one is gone.
func TestTurn(t *testing.T) {
	t.Parallel()
	f := file(old(nil))
	h := newHouse(t, f)
	h.insert(1, false, river.InsertOpts{Queue: "q"})
	inside, dead := make(chan uint32, 1), make(chan struct{})
	victim := h.evaluator(f, nil)
	victim.FailAt(func(step string) error {
		if step == "enqueued" {
			var pid uint32
			// Databases that were copied from one have the same numbers for their tables.
			err := h.pool.QueryRow(t.Context(), `SELECT l.pid FROM pg_locks l JOIN pg_database d ON d.oid = l.database
				WHERE d.datname = current_database() AND l.relation = 'pelton.alert_state'::regclass AND l.mode = 'RowExclusiveLock'`).Scan(&pid)
			if err != nil {
				return err
			}
			inside <- pid
			<-dead
		}
		return nil
	})
	var group sync.WaitGroup
	group.Go(func() {
		if did, err := victim.Evaluate(t.Context()); did || err == nil {
			t.Errorf("the one that was killed: %v, %v", did, err)
		}
	})
	pid := <-inside
	other := h.evaluator(nil, nil)
	if did, err := other.Evaluate(t.Context()); did || err != nil {
		t.Errorf("another while one evaluates: %v, %v", did, err)
	}
	if got := h.notices(); got != "" {
		t.Errorf("before the commit there are notices:\n%s", got)
	}
	h.exec(`SELECT pg_terminate_backend($1)`, pid)
	close(dead)
	group.Wait()
	pgtest.Eventually(t, patience, func() bool { // the server may take a moment to end the session
		did, err := other.Evaluate(t.Context())
		return did && err == nil
	}, "another to have the turn")
	if got := h.notices(); !strings.HasPrefix(got, "firing ops oldest_age: queue q: ") || strings.Contains(got, "\n") {
		t.Errorf("then there are\n%s", got)
	}
}

// An evaluation that ends anywhere before its commit has neither changed anything nor told anybody, and the next does both.
func TestCrashOfAnEvaluation(t *testing.T) {
	t.Parallel()
	errCrash := errors.New("the process ends")
	for _, at := range []string{"decided", "enqueued"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, file(old(nil)))
			id := h.insert(1, false, river.InsertOpts{Queue: "q"})
			crash := func() {
				t.Helper()
				h.eval.FailAt(func(step string) error {
					if step == at {
						return errCrash
					}
					return nil
				})
				if _, err := h.eval.Evaluate(t.Context()); !errors.Is(err, errCrash) {
					t.Fatalf("evaluate: %v", err)
				}
				h.eval.FailAt(func(string) error { return nil })
			}
			crash()
			if alerts, err := h.store.List(t.Context()); err != nil || len(alerts) != 0 || h.notices() != "" {
				t.Errorf("after the crash: %+v, %v", alerts, err)
			}
			h.expect("firing ops oldest_age: queue q: ")
			h.exec(`DELETE FROM pelton.job_ready WHERE $1 = ANY (job_ids)`, id)
			crash()
			if alerts, err := h.store.List(t.Context()); err != nil || len(alerts) != 1 || h.notices() != "" {
				t.Errorf("after the second crash: %+v, %v", alerts, err)
			}
			h.expect("recovered ops oldest_age recovered: queue q: ")
		})
	}
}

// Evaluators that are started do it all by themselves, and not more often than the file says.
func TestLoop(t *testing.T) {
	t.Parallel()
	f := file(old(nil))
	f.Every = alert.Duration(20 * time.Millisecond)
	h := newHouse(t, f)
	for range 2 {
		e := h.evaluator(f, nil)
		e.Start(t.Context())
		e.Start(t.Context())
		t.Cleanup(e.Stop)
	}
	h.insert(1, false, river.InsertOpts{Queue: "q"})
	pgtest.Eventually(t, patience, func() bool { return strings.HasPrefix(h.notices(), "firing ops oldest_age: queue q: ") }, "a notice")
	f.Every = alert.MaxEvery
	if _, err := h.store.Publish(t.Context(), "me", f); err != nil {
		t.Fatal(err)
	}
	if did, err := h.eval.Evaluate(t.Context()); did || err != nil {
		t.Errorf("right after an evaluation: %v, %v", did, err)
	}
}

func TestReminderAndMute(t *testing.T) {
	t.Parallel()
	h := newHouse(t, file(old(func(r *alert.Rule) { r.Remind = alert.Duration(time.Hour) })))
	h.insert(1, false, river.InsertOpts{Queue: "a"})
	h.expect("firing ops oldest_age: queue a: ")
	later := func() {
		h.exec(`UPDATE pelton.alert_state SET noticed_at = noticed_at - interval '1 h' WHERE noticed_at IS NOT NULL`)
	}
	later()
	h.expect("reminder ops oldest_age: queue a: ")
	until := time.Now().Add(time.Hour)
	_, err := h.store.Mute(t.Context(), "anna", alert.Mute{Rule: "oldest_age", Subject: "a", Until: until, Reason: "known"})
	must(t, err)
	later()
	if got := h.evaluate(); got != "" {
		t.Errorf("while it is muted: %s", got)
	}
	h.insert(1, false, river.InsertOpts{Queue: "b"})
	h.expect("firing ops oldest_age: queue b: ")
	status, err := h.store.Status(t.Context())
	must(t, err)
	if a := status.Alerts; len(a) != 2 || a[1].Subject != "a" || a[1].MutedUntil == nil || a[0].MutedUntil != nil || a[1].Notices != 2 ||
		len(status.Mutes) != 1 || status.Mutes[0].CreatedBy != "anna" || status.Late || status.Rules[0].Firing != 2 {
		t.Errorf("%+v", status)
	}
	_, err = h.store.Mute(t.Context(), "bob", alert.Mute{Subject: "c", Until: until})
	must(t, err)
	h.insert(1, false, river.InsertOpts{Queue: "c"})
	if got := h.evaluate(); got != "" {
		t.Errorf("of a subject that is muted: %s", got)
	}
	must(t, h.store.Unmute(t.Context(), "bob", "", "c"))
	h.expect("firing ops oldest_age: queue c: ")
	h.exec(`UPDATE pelton.alert_mute SET until = clock_timestamp()`) // time passes
	later()
	h.expect("reminder ops oldest_age: 3 at once, queue a the first")
	var audit string
	must(t, h.pool.QueryRow(t.Context(), `SELECT string_agg(concat_ws(' ', actor, action, target, before->>'reason', after->>'reason'), '; ' ORDER BY id)
		FROM pelton.audit WHERE action LIKE 'alert.%mute'`).Scan(&audit))
	if want := "anna alert.mute oldest_age/a known; bob alert.mute */c ; bob alert.unmute */c "; audit != want {
		t.Errorf("the audit says %q, want %q", audit, want)
	}
}

func TestMuteRefuses(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	_, err := h.store.Mute(t.Context(), "anna", alert.Mute{Rule: "oldest_agee", Until: time.Now().Add(time.Hour)})
	if !errors.Is(err, alert.ErrNotFound) || !containsAll(err.Error(), `did you mean "oldest_age"?`) {
		t.Errorf("an unknown rule: %v", err)
	}
	_, err = h.store.Mute(t.Context(), "anna", alert.Mute{Rule: "oldest_age", Until: time.Now().Add(-time.Hour)})
	if _, is := errors.AsType[*alert.InputError](err); !is {
		t.Errorf("until the past: %v", err)
	}
	if err := h.store.Unmute(t.Context(), "anna", "oldest_age", "x"); !errors.Is(err, alert.ErrNotFound) {
		t.Errorf("what is not muted: %v", err)
	}
	if _, err := h.store.Test(t.Context(), "ann", h.queue, "ops"); !errors.Is(err, alert.ErrNotFound) {
		t.Errorf("a channel that is not there: %v", err)
	}
}

// Rules of a file are in force for all, until another file's are; who has no file changes nothing.
func TestPublish(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.insert(1, false, river.InsertOpts{Queue: "q"})
	if got := h.evaluate(); got != "" {
		t.Errorf("without a channel: %s", got)
	}
	status, err := h.store.Status(t.Context())
	must(t, err)
	if len(status.Rules) != len(alert.Types()) || status.Source != "" || len(status.Channels) != 0 || status.EvaluatedBy != h.queue.ID() {
		t.Errorf("%+v", status)
	}
	first := file(old(func(r *alert.Rule) { r.Name = "first" }))
	h.exec(`UPDATE pelton.alert_turn SET evaluated_at = NULL`)
	h.eval = h.evaluator(first, nil)
	h.expect("firing ops first: queue q: ")
	h.eval = h.evaluator(nil, nil)
	if got := h.evaluate(); got != "" {
		t.Errorf("who has no file: %s", got)
	}
	second := file(old(func(r *alert.Rule) { r.Name = "second" }))
	second.Path = "second.yaml"
	h.eval = h.evaluator(second, nil)
	if got := h.evaluate(); !containsAll(got, "firing ops second: queue q: ", "\nrecovered ops first recovered: all: the rule is no longer there") &&
		!containsAll(got, "firing ops second: queue q: ", "\nrecovered ops first recovered: ") {
		t.Errorf("another file: %s", got)
	}
	h.eval = h.evaluator(first, nil)
	h.evaluate()
	status, err = h.store.Status(t.Context())
	must(t, err)
	if status.Source != first.Path || len(status.Rules) != 1 || len(status.Alerts) != 1 || status.Alerts[0].Rule != "first" {
		t.Errorf("%+v", status)
	}
	if changed, err := h.store.Publish(t.Context(), "me", alert.BuiltIn()); err != nil || !changed {
		t.Errorf("the rules that are built in: %v, %v", changed, err)
	}
	status, err = h.store.Status(t.Context())
	must(t, err)
	if status.Source != "" || len(status.Rules) != len(alert.Types()) {
		t.Errorf("%+v", status)
	}
	var audit string
	must(t, h.pool.QueryRow(t.Context(), `SELECT string_agg(concat_ws(' ', target, before->'rules'->0->>'name', '->', after->'rules'->0->>'name'), '; ' ORDER BY id)
		FROM pelton.audit WHERE action = 'alert.publish'`).Scan(&audit))
	want := fmt.Sprintf("%[1]s -> first; %[2]s first -> second; %[1]s second -> first; built in first -> %[3]s", first.Path, second.Path, status.Rules[0].Name)
	if !strings.HasSuffix(audit, want) {
		t.Errorf("the audit says %q, want %q", audit, want)
	}
}

// A rule that cannot be read says so, keeps its states, and does not hold up the others.
func TestRuleThatCannotBeRead(t *testing.T) {
	t.Parallel()
	f := file(rule(alert.DeadLetters, nil), old(nil))
	h := newHouse(t, f)
	h.works(h.pool, "pay", nil)
	h.insert(1, true, river.InsertOpts{Queue: "pay", MaxAttempts: 1})
	h.ended(1)
	h.expect("firing ops dead_letters: ")
	h.exec(`DELETE FROM pelton.job_dead`)
	tx, err := h.pool.Begin(t.Context())
	must(t, err)
	_, err = tx.Exec(t.Context(), `LOCK TABLE pelton.job_dead IN ACCESS EXCLUSIVE MODE`)
	must(t, err)
	h.insert(1, false, river.InsertOpts{Queue: "q"})
	if did, err := h.eval.Evaluate(t.Context()); !did || err != nil {
		t.Fatalf("evaluate: %v, %v", did, err)
	}
	if got := h.notices(); !strings.HasPrefix(got, "firing ops oldest_age: queue q: ") || strings.Contains(got, "\n") {
		t.Errorf("%s", got)
	}
	status, err := h.store.Status(t.Context())
	must(t, err)
	if w := status.Rules[0]; !containsAll(w.Fault, "lock timeout") || w.FaultAt == nil || w.Firing != 1 {
		t.Errorf("%+v", w)
	}
	must(t, tx.Rollback(t.Context()))
	h.expect("recovered ops dead_letters recovered: ")
	status, err = h.store.Status(t.Context())
	must(t, err)
	if w := status.Rules[0]; w.Fault != "" || w.FaultAt != nil {
		t.Errorf("%+v", w)
	}
}

// A notice names some subjects, and counts the others.
func TestManySubjects(t *testing.T) {
	t.Parallel()
	h := newHouse(t, file(old(nil)))
	for i := range 30 {
		h.insert(1, false, river.InsertOpts{Queue: fmt.Sprintf("q%02d", i)})
	}
	h.expect("firing ops oldest_age: 30 at once, queue q00 the first")
	var named, more int
	must(t, h.pool.QueryRow(t.Context(), `SELECT json_array_length(args->'subjects'), (args->>'more')::int FROM pelton.job WHERE kind = $1`,
		alert.Kind).Scan(&named, &more))
	if named != 20 || more != 10 {
		t.Errorf("%d are named, and %d more", named, more)
	}
}

// On tables with many rows of many days the statements read by index, and little.
func TestPlans(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	now := time.Now()
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	const rows, days = 200_000, 4
	exec(fmt.Sprintf(`DO $$ BEGIN
		FOR d IN 0..%d LOOP
			EXECUTE format('CREATE TABLE pelton.job_t%%s (LIKE pelton.job INCLUDING ALL)', d);
			EXECUTE format('CREATE TABLE pelton.job_attempt_t%%s (LIKE pelton.job_attempt INCLUDING ALL)', d);
		END LOOP; END $$`, days))
	exec(`ALTER TABLE pelton.job DETACH PARTITION pelton.job_rest; ALTER TABLE pelton.job_attempt DETACH PARTITION pelton.job_attempt_rest`)
	from := int64(0)
	for d := range days + 1 {
		to := alert.JobID(now.Add(-time.Duration(days-d-1) * 24 * time.Hour))
		for _, table := range []string{"job", "job_attempt"} {
			exec(fmt.Sprintf(`ALTER TABLE pelton.%[1]s ATTACH PARTITION pelton.%[1]s_t%[2]d FOR VALUES FROM (%[3]d) TO (%[4]d)`, table, d, from, to))
		}
		from = to
	}
	least, most := alert.JobID(now.Add(-days*24*time.Hour+time.Minute)), alert.JobID(now)
	exec(`INSERT INTO pelton.job (id, kind, queue, args) SELECT $1 + n * (($2::bigint - $1) / $3), 'k' || n % 5, 'q' || n % 7, '{}'
		FROM generate_series(1, $3::bigint) n`, least, most, rows)
	exec(`INSERT INTO pelton.job_attempt (job_id, run, attempt, outcome, ended_at) SELECT j.id, 1, 1,
		CASE WHEN random() < 0.3 THEN 'discarded' ELSE 'completed' END::pelton.outcome, to_timestamp((j.id >> 24) + 1704067200) FROM pelton.job j`)
	exec(`INSERT INTO pelton.schedule (name, spec) VALUES ('s', '{}')`)
	exec(`INSERT INTO pelton.schedule_tick (schedule_id, tick, at, n, source, outcome, reason, decided_at)
		SELECT 1, pelton.tick_key(a.at), a.at, 0, 'clock', CASE WHEN n % 1000 = 0 THEN 'failed' ELSE 'fired' END, 'none', a.at
		FROM generate_series(1, 50000) n, LATERAL (SELECT now() - n * interval '1 s' AS at) a`)
	exec(`INSERT INTO pelton.flow_sla_miss (at, run_id, within, project, flow, detail) SELECT now() - n * interval '1 min', n, '1 h', 'p', 'f', 'd' FROM generate_series(1, 20000) n`)
	exec(`INSERT INTO pelton.job_dead (job_id, died_at, created_at, priority, max_attempts, attempt, reason, kind, queue, args, attempts)
		SELECT n, now() - n * interval '1 min', now(), 1, 1, 1, 'exhausted', 'k', 'q', '{}', '[]' FROM generate_series(1, 20000) n`)
	exec(`ANALYZE`)
	since := now.Add(-30 * time.Minute)
	none := []string{}
	full := regexp.MustCompile(`Seq Scan on (job_t[0-3]|job_attempt_t[0-3]|job_dead|flow_sla_miss|schedule_tick_rest)`) // those that hold rows
	for name, args := range map[string][]any{
		"failure_rate": {alert.JobID(since.Add(-6 * time.Hour)), int64(5000), since, none, none, "pelton_alerts", false, int64(5), 0.1, int64(100)},
		"dead_letters": {since, none, none, "pelton_alerts", int64(1000), int64(100)},
		"sla_missed":   {since, none, none, int64(1000), int64(100)},
		"missed_ticks": {since, none, int64(1000), int64(100)},
		"late_ticks":   {since, none, int64(1000), int64(100)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan, err := explain(t, pool, name, args)
			must(t, err)
			if scan := full.FindString(plan); scan != "" {
				t.Errorf("%s:\n%s", scan, plan)
			}
			if name == "failure_rate" && (!containsAll(plan, "Index Scan Backward using job_attempt_t3_pkey") || strings.Contains(plan, "job_attempt_t1")) {
				t.Errorf("it does not read the newest first, or old partitions too:\n%s", plan)
			}
		})
	}
}

func explain(t *testing.T, pool *pgxpool.Pool, name string, args []any) (string, error) {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		return "", err
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), alert.Statement("limits", "pelton")); err != nil {
		return "", err
	}
	rows, err := tx.Query(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF) "+alert.Statement(name, "pelton"), append([]any{alert.Mode}, args...)...)
	if err != nil {
		return "", err
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return strings.Join(lines, "\n"), err
}

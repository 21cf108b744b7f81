package alert_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/admin/alert"
	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/jobs/flow/flowtest"
	"github.com/peltonq/pelton/periodic"
	"github.com/peltonq/pelton/schema"
	"github.com/peltonq/pelton/schema/schematest"
)

func TestFailureRate(t *testing.T) {
	t.Parallel()
	h := newHouse(t, file(rule(alert.FailureRate, func(r *alert.Rule) { r.Over, r.Until, r.MinRuns = 0.3, 0.1, 10 })))
	h.works(h.pool, "pay", nil)
	h.insert(9, true, river.InsertOpts{Queue: "pay", MaxAttempts: 1})
	h.ended(9)
	if got := h.evaluate(); got != "" {
		t.Errorf("of nine runs it tells\n%s", got)
	}
	h.insert(11, false, river.InsertOpts{Queue: "pay"})
	h.ended(20)
	h.expect("firing ops failure_rate: queue pay: 45 % of 20 runs in the last 5m failed")
	h.insert(50, false, river.InsertOpts{Queue: "pay"})
	h.ended(70) // 13 %: less than 30, but not less than 10
	if got := h.evaluate(); got != "" {
		t.Errorf("between the two limits it tells\n%s", got)
	}
	h.insert(30, false, river.InsertOpts{Queue: "pay"})
	h.ended(100)
	h.expect("recovered ops failure_rate recovered: queue pay: ")
}

// Where there are more runs than are read, the tallies that executors keep tell of all of them.
func TestFailureRateOfManyRuns(t *testing.T) {
	t.Parallel()
	h := newHouse(t, file(rule(alert.FailureRate, func(r *alert.Rule) { r.MinRuns = 5 })))
	h.works(h.pool, "pay", nil)
	h.insert(20, false, river.InsertOpts{Queue: "pay"})
	h.ended(20)
	h.exec(`INSERT INTO pelton.queue_tally (minute, queue, completed, failed, cancelled, discarded, waits)
		SELECT date_trunc('minute', now()) - interval '1 min' * n, 'slow', 60, 20, 5, 20, '{}' FROM unnest(ARRAY[1, 2, 100]) n`)
	if got := h.evaluate(); got != "" {
		t.Errorf("of all runs it tells\n%s", got)
	}
	h.eval.ReadRuns(10)
	h.expect("firing ops failure_rate: queue slow: 40 % of 200 runs in the last 5m failed")
}

func TestFailureRateByKind(t *testing.T) {
	t.Parallel()
	h := newHouse(t, file(
		rule(alert.FailureRate, func(r *alert.Rule) { r.By, r.MinRuns = "kind", 5 }),
		rule(alert.FailureRate, func(r *alert.Rule) { r.Name, r.MinRuns, r.Queues = "elsewhere", 5, []string{"other"} }),
		rule(alert.FailureRate, func(r *alert.Rule) { r.Name, r.MinRuns, r.Kinds = "others", 5, []string{"other"} })))
	h.works(h.pool, "pay", nil)
	h.insert(5, true, river.InsertOpts{Queue: "pay", MaxAttempts: 1})
	h.ended(5)
	h.expect("firing ops failure_rate: kind task: 100 % of 5 runs")
	h.exec(`UPDATE pelton.job_attempt SET ended_at = ended_at - interval '6 min'`) // time passes
	h.expect("recovered ops failure_rate recovered: kind task: ")
}

// What the alerts' own queue does is nobody's subject, unless a rule says so.
func TestQueueOfAlertsIsNoSubject(t *testing.T) {
	t.Parallel()
	age := func(name string, queues ...string) alert.Rule {
		return rule(alert.OldestAge, func(r *alert.Rule) { r.Name, r.OverAge, r.Queues = name, 1, queues })
	}
	h := newHouse(t, file(age("all"), age("mine", alert.DefaultQueue)))
	h.insert(1, false, river.InsertOpts{Queue: alert.DefaultQueue})
	h.expect("firing ops mine: queue pelton_alerts: the oldest of 1 ready job has waited for ")
}

func TestOldestAge(t *testing.T) {
	t.Parallel()
	h := newHouse(t, file(rule(alert.OldestAge, func(r *alert.Rule) { r.OverAge = alert.Duration(time.Millisecond) })))
	if got := h.evaluate(); got != "" {
		t.Errorf("an empty line: %s", got)
	}
	h.insert(150, false, river.InsertOpts{Queue: "pay"})
	h.expect("firing ops oldest_age: queue pay: the oldest of 150 ready jobs has waited for ")
	must(t, h.queue.QueuePause(t.Context(), "pay", nil))
	h.evaluate()
	alerts, err := h.store.List(t.Context())
	must(t, err)
	if len(alerts) != 1 || alerts[0].State != alert.StateFiring || alerts[0].Title != "queue pay" || alerts[0].Notices != 1 ||
		!containsAll(alerts[0].Text, "(the queue is paused)") {
		t.Errorf("%+v", alerts)
	}
	must(t, h.queue.QueueResume(t.Context(), "pay", nil))
	h.works(h.pool, "pay", nil)
	h.ended(150)
	h.expect("recovered ops oldest_age recovered: queue pay: ")
}

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	h := newHouse(t, file(
		rule(alert.DeadLetters, nil),
		rule(alert.DeadLetters, func(r *alert.Rule) { r.Name, r.MoreThan = "many", 2 }),
		rule(alert.DeadLetters, func(r *alert.Rule) { r.Name, r.Queues = "elsewhere", []string{"other"} })))
	executor := h.works(h.pool, "pay", nil)
	h.insert(2, true, river.InsertOpts{Queue: "pay", MaxAttempts: 1})
	h.ended(2)
	h.expect("firing ops dead_letters: queue pay: 2 new dead letters (job ")
	h.insert(1, true, river.InsertOpts{Queue: "pay", MaxAttempts: 1})
	h.ended(3)
	h.expect("firing ops many: 3 dead letters, which is more than 2")
	must(t, executor.Stop(t.Context()))
	if made, err := h.queue.DeadRedriveMany(t.Context(), &jobs.DeadFilter{}, 2); err != nil || len(made) != 2 {
		t.Fatalf("%v, %v", made, err)
	}
	h.expect("recovered ops many recovered: 3 dead letters")
	if _, err := h.queue.DeadRedriveMany(t.Context(), &jobs.DeadFilter{}, 2); err != nil {
		t.Fatal(err)
	}
	h.expect("recovered ops dead_letters recovered: queue pay: ")
}

func TestSLAMissed(t *testing.T) {
	t.Parallel()
	h := newHouse(t, file(
		rule(alert.SLAMissed, nil), rule(alert.SLAMissed, func(r *alert.Rule) { r.Name, r.Flows = "others", []string{"other"} })))
	workers := jobs.NewWorkers()
	jobs.AddWorker(workers, &flowtest.Worker{Decide: func(ctx context.Context, _ flowtest.Job) (map[string]string, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	queue := h.works(h.pool, "default", func(c *jobs.Config) { c.Workers = workers })
	flows, err := flow.NewClient(h.pool, queue, &flow.Config{Logger: quiet(), Kinds: []string{flowtest.Kind}})
	must(t, err)
	flows.Start(t.Context())
	t.Cleanup(flows.Stop)
	nightly, err := flow.New("nightly").Node("a", flowtest.Kind, nil).Build()
	must(t, err)
	_, err = flows.PushFlows(t.Context(), "etl", nightly)
	must(t, err)
	run, err := flows.Run(t.Context(), flow.RunParams{Project: "etl", Flow: "nightly", Options: flow.Options{
		SLAs: []flow.SLA{{Within: flow.Duration(time.Millisecond), Kill: true}},
	}})
	must(t, err)
	if _, err := flows.Ended(t.Context(), run, nil); err != nil {
		t.Fatal(err)
	}
	h.expect("firing ops sla_missed: flow etl/nightly: run 1 missed its SLA: it was to end within 1ms, and is ")
	h.exec(`UPDATE pelton.flow_sla_miss SET at = at - interval '61 min'`) // time passes
	h.expect("recovered ops sla_missed recovered: flow etl/nightly: ")
}

func TestMissedTicks(t *testing.T) {
	t.Parallel()
	h := newHouse(t, file(
		rule(alert.MissedTicks, nil), rule(alert.MissedTicks, func(r *alert.Rule) { r.Name, r.Schedules = "others", []string{"other"} })))
	flows, err := flow.NewClient(h.pool, h.queue, &flow.Config{Logger: quiet()})
	must(t, err)
	schedules, err := periodic.NewClient(h.pool, h.queue, flows, &periodic.Config{Logger: quiet()})
	must(t, err)
	put := func(s periodic.Schedule) {
		s.Every, s.Missed = periodic.Duration(20*time.Minute), periodic.MissedSkip
		s.Job = &periodic.JobTarget{Kind: "task", Args: json.RawMessage(`{}`)}
		_, err := schedules.Put(t.Context(), s)
		must(t, err)
	}
	put(periodic.Schedule{Name: "report"})
	put(periodic.Schedule{Name: "paused"})
	_, err = schedules.Pause(t.Context(), "paused")
	must(t, err)
	if got := h.evaluate(); got != "" {
		t.Errorf("before it is due: %s", got)
	}
	h.exec(`UPDATE pelton.schedule_due SET decided = decided - interval '1 h', next_at = next_at - interval '1 h', wake = wake - interval '1 h'
		WHERE wake IS NOT NULL`) // an hour passes, and no scheduler was there
	h.expect("firing ops missed_ticks: schedule report: due since ")
	must(t, schedules.Start(t.Context()))
	t.Cleanup(schedules.Stop)
	pgtest.Eventually(t, patience, func() bool {
		ticks, err := schedules.Ticks(t.Context(), "report", periodic.TicksParams{})
		return err == nil && len(ticks.Ticks) >= 2
	}, "the ticks to be missed")
	pgtest.Eventually(t, patience, func() bool {
		h.evaluate()
		alerts, err := h.store.List(t.Context())
		return err == nil && len(alerts) == 1 && containsAll(alerts[0].Text, "ticks did not run, that of ", "the last (missed")
	}, "the alert to tell of missed ticks")
	h.exec(`UPDATE pelton.schedule_tick SET decided_at = decided_at - interval '61 min'`) // time passes
	h.expect("recovered ops missed_ticks recovered: schedule report: ")
}

// A tick whose target is refused has failed.
func TestFailedTicks(t *testing.T) {
	t.Parallel()
	h := newHouse(t, file(rule(alert.MissedTicks, nil)))
	flows, err := flow.NewClient(h.pool, h.queue, &flow.Config{Logger: quiet()})
	must(t, err)
	schedules, err := periodic.NewClient(h.pool, h.queue, flows, &periodic.Config{Logger: quiet(), SchedulerOff: true})
	must(t, err)
	_, err = schedules.Put(t.Context(), periodic.Schedule{
		Name: "none", Every: periodic.Duration(time.Hour), Flow: &periodic.FlowTarget{Project: "none", Flow: "none"},
	})
	must(t, err)
	h.exec(`UPDATE pelton.schedule_due SET decided = decided - interval '1 h', next_at = clock_timestamp() - interval '1 s', wake = clock_timestamp() - interval '1 s'`)
	firing, err := periodic.NewClient(h.pool, h.queue, flows, &periodic.Config{Logger: quiet()})
	must(t, err)
	must(t, firing.Start(t.Context()))
	t.Cleanup(firing.Stop)
	h.expect("firing ops missed_ticks: schedule none: ")
	alerts, err := h.store.List(t.Context())
	must(t, err)
	if !containsAll(alerts[0].Text, "the last (failed: ") {
		t.Errorf("%+v", alerts)
	}
}

// An executor whose connections end, and that never comes back, is one that was killed.
func TestDeadExecutor(t *testing.T) {
	t.Parallel()
	dsn := schematest.DSN(t)
	proxy := pgtest.NewProxy(t, dsn)
	h := newHouseOn(t, pgtest.Pool(t, dsn), file(
		rule(alert.DeadExecutor, nil), rule(alert.DeadExecutor, func(r *alert.Rule) { r.Name, r.Queues = "others", []string{"other"} })))
	stopped := h.works(h.pool, "pay", func(c *jobs.Config) { c.ID = "stopped" })
	h.works(pgtest.Pool(t, proxy.DSN()), "pay", func(c *jobs.Config) { c.ID = "killed" })
	must(t, stopped.Stop(t.Context()))
	if got := h.evaluate(); got != "" {
		t.Errorf("who says goodbye is told of: %s", got)
	}
	proxy.Down()
	h.works(h.pool, "", func(c *jobs.Config) { // there is no other executor that it could take for dead
		c.Queues, c.Workers, c.DutiesOff, c.Lease = nil, nil, false, 200*time.Millisecond
	})
	h.expect("firing ops dead_executor: executor killed: died without a goodbye, found at ")
	h.exec(`UPDATE pelton.executor SET died_at = died_at - interval '16 min' WHERE died_at IS NOT NULL`) // time passes
	h.expect("recovered ops dead_executor recovered: executor killed: ")
}

func TestPartitions(t *testing.T) {
	t.Parallel()
	h := newHouse(t, file(rule(alert.Partitions, nil)))
	if got := h.evaluate(); !containsAll(got, "firing ops partitions: ", " at once, table ", " the first") {
		t.Errorf("without a partition: %s", got)
	}
	keeper, err := schema.NewKeeper(h.pool, schema.DefaultName, schema.KeeperConfig{})
	must(t, err)
	_, err = keeper.Maintain(t.Context())
	must(t, err)
	if got := h.evaluate(); !containsAll(got, "recovered ops partitions recovered: ") {
		t.Errorf("with partitions: %s", got)
	}
}

// An evaluation of partitions takes no second connection while it holds one.
func TestPartitionsWithOneConnection(t *testing.T) {
	t.Parallel()
	h := newHouseOn(t, schematest.Pool(t, func(c *pgxpool.Config) { c.MaxConns = 1 }), file(rule(alert.Partitions, nil)))
	if got := h.evaluate(); !containsAll(got, "firing ops partitions: ") {
		t.Errorf("without a partition: %s", got)
	}
}

// Rules for which the time of an evaluation is not enough are read first by the next one, whoever makes it.
func TestRulesTakeTurnsWhereTimeIsShort(t *testing.T) {
	t.Parallel()
	var rules []alert.Rule
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		rules = append(rules, rule(alert.Partitions, func(r *alert.Rule) { r.Name = name }))
	}
	f := file(rules...)
	h := newHouse(t, f)
	told := map[string]int{}
	for _, want := range []string{"a b", "c d", "a e"} { // a is read once more, which tells nothing new
		h.eval = h.evaluator(f, nil)
		h.eval.ReadAtMost(2)
		_, err := h.eval.Evaluate(t.Context())
		must(t, err)
		for line := range strings.Lines(h.notices()) {
			name, _, _ := strings.Cut(strings.TrimPrefix(line, "firing ops "), ":")
			told[name]++
			if !strings.Contains(want, name) {
				t.Errorf("where %s are to be read, %s tells: %s", want, name, line)
			}
		}
	}
	for _, r := range rules {
		if told[r.Name] != 1 {
			t.Errorf("rule %s told %d times", r.Name, told[r.Name])
		}
	}
}

func TestDuties(t *testing.T) {
	t.Parallel()
	h := newHouse(t, file(rule(alert.Duties, nil)))
	if got := h.evaluate(); got != "" {
		t.Errorf("while all is done: %s", got)
	}
	h.exec(`UPDATE pelton.duty SET done_at = now() - interval '1 h', due_at = now() - interval '4 min' WHERE duty = 'mover'`)
	h.expect("firing ops duties: duty mover: nobody has done it since ")
	h.exec(`UPDATE pelton.duty SET failing_since = now() - interval '2 min', failed_at = now(), failed_by = 'server_1', error = 'read-only', done_at = now() - interval '3 min',
		due_at = now() - interval '2 min' WHERE duty = 'keeper'`)
	if got := h.evaluate(); !containsAll(got, "firing ops duties: duty keeper: fails since ", " at server_1: read-only") {
		t.Errorf("a duty fails: %s", got)
	}
	h.exec(`UPDATE pelton.duty SET done_at = now(), due_at = now(), failing_since = NULL, error = NULL`)
	if got := h.evaluate(); !containsAll(got, "recovered ops duties recovered: 2 at once, duty keeper the first") {
		t.Errorf("they are done again: %s", got)
	}
}

func TestLostJobs(t *testing.T) {
	t.Parallel()
	f := file(rule(alert.LostJobs, nil))
	h := newHouse(t, f)
	var lost atomic.Int64
	lost.Store(-1)
	h.eval = h.evaluator(f, func() (int, bool) { return int(lost.Load()), lost.Load() >= 0 })
	if got := h.evaluate(); got != "" {
		t.Errorf("nobody knows: %s", got)
	}
	lost.Store(3)
	h.expect("firing ops lost_jobs: 3 jobs are in no place")
	h.eval = h.evaluator(nil, nil) // another process, which does not know
	if got := h.evaluate(); got != "" {
		t.Errorf("the other one does not know: %s", got)
	}
	h.eval = h.evaluator(nil, func() (int, bool) { return 0, true })
	h.expect("recovered ops lost_jobs recovered: 3 jobs")
}

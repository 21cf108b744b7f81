package schema_test

import (
	"testing"

	"github.com/peltonq/pelton/schema"
	"github.com/peltonq/pelton/schema/schematest"
)

// Each table gets rows that are past their time and rows that must stay; the latter are named keep.
func TestSweep(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	past(t, pool, 10)
	live := enqueued(t, pool, 9*hour) // becomes a survivor
	mustExec(t, pool, `INSERT INTO pelton.job_parked (job_id) VALUES ($1)`, live)
	gone := enqueued(t, pool, 9*hour)
	end(t, pool, gone, "completed", 8*hour)
	for _, sql := range []string{
		`INSERT INTO pelton.job_dead (job_id, died_at, created_at, priority, max_attempts, attempt, reason, kind, queue, args, attempts)
			SELECT n, now() - n * interval '1 day', now(), 1, 1, 1, 'poison', CASE WHEN n < 30 THEN 'keep' ELSE 'k' END, 'q', '{}', '[]'
			FROM generate_series(25, 35) n`,
		`INSERT INTO pelton.audit (at, action, target) SELECT now() - n * interval '1 day', 'a', CASE WHEN n < 60 THEN 'keep' ELSE 't' END
			FROM generate_series(55, 2500) n`, // more than two batches
		`INSERT INTO pelton.executor (pid, host, stopped_at, died_at, name) VALUES
			(1, 'h', now() - interval '5 h', NULL, 'x'), (2, 'h', NULL, now() - interval '5 h', 'x'),
			(3, 'h', NULL, NULL, 'keep'), (4, 'h', now() - interval '1 h', NULL, 'keep'), (5, 'h', NULL, now() - interval '5 h', 'keep')`,
		`INSERT INTO pelton.job_lease (executor, no, job_ids) SELECT id, 1, '{}' FROM pelton.executor WHERE pid = 5`,
		`INSERT INTO pelton.floor (at, relation, settled, instance, follows) VALUES
			(now() - interval '5 h', 'job_ready', 1, now(), 0), (now() - interval '2 h', 'job_ready', 2, now(), 1),
			(now() - interval '5 h', 'job_scheduled', 1, now(), 0), (now() - interval '1 min', 'job_scheduled', 2, now(), 3)`,
		`INSERT INTO pelton.flow_sla_miss (at, run_id, within, project, flow, detail) VALUES
			(now() - interval '5 h', 1, '1 h', 'p', 'f', 'x'), (now() - interval '1 h', 1, '1 h', 'p', 'f', 'keep')`,
		`INSERT INTO pelton.alert_mute (rule, subject, until, created_by) VALUES
			('keep', '*', now() + interval '1 h', 'u'), ('keep', 'a', now() - interval '23 h', 'u'), ('x', '*', now() - interval '25 h', 'u')`,
		`INSERT INTO pelton.api_request (at, actor, key, hash) VALUES (now() - interval '23 h', 'a', 'keep', ''), (now() - interval '25 h', 'a', 'x', '')`,
		`INSERT INTO pelton.access_user (name) VALUES ('u')`,
		`INSERT INTO pelton.access_session (hash, user_id, expires_at, address) SELECT convert_to(x.name, 'UTF8'), id, now() + at, 'a'
			FROM pelton.access_user, (VALUES ('keep', interval '1 h'), ('gone', interval '-1 s')) x(name, at)`,
		`INSERT INTO pelton.access_failure (key, count, at, free_at) VALUES ('keep', 1, now() - interval '23 h', now()), ('x', 1, now() - interval '25 h', now())`,
		`INSERT INTO pelton.access_token (hash, user_id, name, project, role, expires_at, revoked_at)
			SELECT convert_to(n::text, 'UTF8'), id, t.name, '*', 'viewer', now() - ended, now() - revoked
			FROM pelton.access_user, (VALUES (1, 'keep', interval '-9 d', NULL), (2, 'keep', interval '55 d', NULL), (3, 'x', interval '65 d', NULL),
				(4, 'x', interval '-9 d', interval '65 d'), (5, 'keep', interval '-9 d', interval '55 d')) t(n, name, ended, revoked)`,
		`INSERT INTO pelton.schedule (name, spec) VALUES ('s', '{}')`,
		`INSERT INTO pelton.schedule_backfill (schedule_id, ended_at, from_at, to_at, decided, total, only_missed, created_by)
			SELECT id, now() - b.ago, now(), now(), now(), 1, true, b.name
			FROM pelton.schedule, (VALUES ('keep', NULL), ('keep', interval '1 h'), ('x', interval '5 h')) b(name, ago)`,
		`INSERT INTO pelton.queue_tally SELECT date_trunc('minute', now()) - n * interval '1 hour', CASE WHEN n < 48 THEN 'keep' ELSE 'x' END, 1, 0, 0, 0, '{}'
			FROM generate_series(45, 50) n`,
		`INSERT INTO pelton.job_sleeper (line, executor, at) VALUES ('a', 1, now() - interval '2 min'), ('keep', 1, now())`,
	} {
		mustExec(t, pool, sql)
	}
	for id, name := range map[int64]string{live: "keep", gone: "gone"} {
		mustExec(t, pool, `INSERT INTO pelton.job_change (job_id, queue) VALUES ($1, $2)`, id, name)
		mustExec(t, pool, `INSERT INTO pelton.job_void (job_id, run, reason) VALUES ($1, 1, 'moved'), ($1, 2, 'moved')`, id)
		mustExec(t, pool, `INSERT INTO pelton.job_unique (key, job_id, states) VALUES (convert_to($2, 'UTF8'), $1, 1)`, id, name)
	}
	config := short
	config.Retention.Dead, config.Retention.Audit = 30*day-hour, 60*day-hour
	report := maintain(t, newKeeper(t, pool, config))
	for table, want := range map[string]struct {
		deleted, left int
		keep          string
	}{
		"job_dead":       {6, 5, "kind = 'keep'"},
		"audit":          {2441, 5, "target = 'keep'"},
		"executor":       {2, 3, "name = 'keep'"},
		"floor":          {2, 2, "settled = 2"},
		"job_sleeper":    {1, 1, "line = 'keep'"},
		"queue_tally":    {3, 3, "queue = 'keep'"},
		"flow_sla_miss":  {1, 1, "detail = 'keep'"},
		"alert_mute":     {1, 2, "rule = 'keep'"},
		"api_request":    {1, 1, "key = 'keep'"},
		"access_session": {1, 1, "hash = 'keep'"},
		"access_failure": {1, 1, "key = 'keep'"},
		"access_token":   {2, 3, "name = 'keep'"},
		"job_change":     {1, 1, "queue = 'keep'"},

		"schedule_backfill": {1, 2, "created_by = 'keep'"},
		"job_void":          {2, 2, "EXISTS (SELECT FROM pelton.job WHERE id = job_id)"},
		"job_unique":        {1, 1, "key = 'keep'"},
	} {
		left, kept := count(t, pool, "pelton."+table), count(t, pool, "pelton."+table+" WHERE "+want.keep)
		if report.Deleted[table] != want.deleted || left != want.left || kept != want.left {
			t.Errorf("%s: %d deleted, %d of %d left are right; want %d deleted, %d left", table, report.Deleted[table], kept, left,
				want.deleted, want.left)
		}
	}
}

// A row that somebody holds is left for the next pass, and the others go.
func TestSweepWaitsForNobody(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	mustExec(t, pool, `INSERT INTO pelton.audit (at, action, target) SELECT now() - interval '3 y', 'a', 't' FROM generate_series(1, 10)`)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), `UPDATE pelton.audit SET actor = 'me' WHERE id = (SELECT min(id) FROM pelton.audit)`); err != nil {
		t.Fatal(err)
	}
	if report := maintain(t, newKeeper(t, pool, short)); report.Deleted["audit"] != 9 {
		t.Fatalf("%+v", report)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if report := maintain(t, newKeeper(t, pool, short)); report.Deleted["audit"] != 1 {
		t.Fatalf("%+v", report)
	}
}

func TestKeeperConfig(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	for name, config := range map[string]schema.KeeperConfig{
		"a part of a second": {PartitionSize: day + 1},
		"nothing ahead":      {Ahead: -1},
		"low above ahead":    {Ahead: 3, Low: 4},
		"negative retention": {Retention: schema.Retention{Logs: -1}},
	} {
		if _, err := schema.NewKeeper(pool, "pelton", config); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := schema.NewKeeper(pool, "Pelton; DROP", schema.KeeperConfig{}); err == nil {
		t.Error("a bad schema name: no error")
	}
}

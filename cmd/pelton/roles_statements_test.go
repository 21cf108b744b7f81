package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/peltonq/pelton/internal/sqlfile"
)

// What workers, schedulers and administrators run, by folder; an entry with a slash before it stands for all but those.
var (
	workerRuns = map[string]string{
		"jobs/internal/store/sql": `add_tallies awake beat bury cancel_waiting claim delete_leases drop_leases drop_voids duties end_runs finish_copy finish_full
			free_ended_keys hint hint_due honour_voids line_up look_again look_lines outcomes put_off read read_attempts read_changes read_left
			read_voids register sleep stored_attempts take_leases unregister wake writers_open`,
		"jobs/joblog/sql":              "append trim",
		"internal/floor/sql":           "refresh_job_ready below_job_ready",
		"jobs/flow/internal/store/sql": "files content",
		"jobs/flow/secret/sql":         "of_node",
		"admin/sql":                    "gauges leased running",
	}
	schedulerRuns = map[string]string{
		"jobs/internal/store/sql": `anything_to_sweep beats bury cancel_waiting drop_voids end_runs facts hint honour_in_line honour_voids insert
			job_ids keep_keys line_up mark_dead next_due note_duties old_voids outcomes put_back put_off read_leases reap_turn sweep_keys sweep_voids take_due
			take_leases wake cancel_many stored_attempts schedule`,
		"internal/floor/sql":           "/",
		"jobs/flow/internal/store/sql": "/insert_version insert_flows insert_files insert_content make_project keep_contents",
		"periodic/internal/store/sql": `/add_due add_schedule adopt backfill_add change_schedule delete_schedule mark_trigger pause_schedule
			resume_schedule backfills`,
		"admin/sql":       "/limits",
		"admin/alert/sql": "/drop_mute lock_mute put_mute",
	}
	adminRuns = map[string]string{
		"jobs/internal/store/sql": `audit_lost audit_stale audit_twice cancel cancel_many change count_waiting dead_nodes delete_jobs discard duties
			discard_many insert job_rows list_audit list_dead list_executors list_jobs_by_time search_ended search_jobs search_states looked_at_all looked_at_ids looked_in_places job_bounds line_is_long next_end move_again pause_queue places queues
			read_attempts redrive redrive_many redriven_as reschedule resume_queue retry runs_before runs_of update_queue`,
		"jobs/joblog/sql": "/append trim",
		"jobs/flow/internal/store/sql": `/add_miss drop_letters look reports delete_reports update_nodes fire_timers sweep_nodes sweep_runs sweep_versions report_missed
			delete_unused lock_unused drop_orphans set_timer`,
		"periodic/internal/store/sql": `/backfill_begun backfill_counted backfill_live backfill_lock backfill_next backfill_put_off backfill_wait
			claim claim_own next put_off jobs_ended runs_ended`,
		"jobs/flow/secret/sql":    "/of_node",
		"admin/access/sql":        "/",
		"admin/alert/sql":         "audit drop_mute lock_mute mutes put_mute rules states turn",
		"admin/internal/once/sql": "/",
		"admin/internal/look/sql": "/",
		"admin/sql":               "/",
	}
)

// enqueues and cancels are calls whose functions do nothing with NULLs.
var (
	enqueues = statement{"enqueue", `SELECT pelton.enqueue('a', unique_by_args => true)`}
	cancels  = []statement{
		{"cancel in the line", `SELECT pelton.cancel(pelton.enqueue('a', unique_by_args => true), 'test')`},
		{"cancel pending", `SELECT pelton.cancel(pelton.enqueue('a', pending => true), 'test')`},
	}
	works = []statement{
		{"log", `INSERT INTO pelton.job_log (job_id, run, pos, stream, data) VALUES (1, 1, 0, 'o', 'x')`},
		{"back into the line", `INSERT INTO pelton.job_ready (priority, line, job_ids) VALUES (1, 'default', '{1}')`},
	}
	operates = []statement{
		{"retry", `SELECT pelton.cancel(j.id, 'test'), pelton.retry(j.id, 'test') FROM pelton.enqueue('a', pending => true) AS j(id)`},
		{"reschedule", `SELECT pelton.reschedule(j.id, now(), 'test') FROM pelton.enqueue('a', run_at => now() + interval '1 h') AS j(id)`},
		{"delete", `SELECT pelton.delete_job(j.id, 'test') FROM pelton.enqueue('a', pending => true) AS j(id)`},
		{"delete in the line", `SELECT pelton.delete_job(j.id, 'test') FROM pelton.enqueue('a') AS j(id)`},
		{"change", `SELECT pelton.change(j.id, new_priority => 3, actor => 'test') FROM pelton.enqueue('a') AS j(id)`},
	}
)

// statement is a file of SQL.
type statement struct{ name, sql string }

func statementsOf(t *testing.T, runs map[string]string) (all []statement) {
	t.Helper()
	for dir, list := range runs {
		list, allBut := strings.CutPrefix(list, "/")
		named := strings.Fields(list)
		set := sqlfile.Load(os.DirFS(root), dir, "pelton")
		files, err := filepath.Glob(filepath.Join(root, dir, "*.sql"))
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, file := range files {
			name := strings.TrimSuffix(filepath.Base(file), ".sql")
			is := slices.Contains(named, name)
			if is {
				found++
			}
			if is != allBut {
				all = append(all, statement{dir + "/" + name, set.Get(name)})
			}
		}
		if found != len(named) {
			t.Errorf("of %s only %d of %d statements are there", dir, found, len(named))
		}
	}
	return all
}

// denies runs a statement as a role, with NULL for all parameters, and says whether a right was missing; nothing of it stays. What else is wrong with
// NULLs does not matter: rights are asked first.
func (s *shell) denies(one statement) error {
	s.t.Helper()
	tx, err := s.pool().Begin(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(s.t.Context()) }()
	prepared, err := tx.Prepare(s.t.Context(), one.name, one.sql)
	if err == nil {
		_, err = tx.Exec(s.t.Context(), one.name, make([]any, len(prepared.ParamOIDs))...)
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "42501" {
		return fmt.Errorf("%s: %w", one.name, err)
	}
	if err != nil && !strings.Contains(one.name, "/") { // it has arguments
		s.t.Fatalf("%s: %v", one.name, err)
	}
	return nil
}

// unlisted are folders whose statements are the tables' owner's, or about roles.
var unlisted = []string{"schema/sql", "schema/grant/sql"}

// Who adds a folder of statements says which role runs them.
func TestEachFolderOfStatementsIsRunByARole(t *testing.T) {
	t.Parallel()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		dir, relErr := filepath.Rel(root, path)
		if err := errors.Join(err, relErr); err != nil || !d.IsDir() || d.Name() != "sql" {
			return err
		}
		_, scheduler := schedulerRuns[dir]
		_, admin := adminRuns[dir]
		if !scheduler && !admin && !slices.Contains(unlisted, dir) {
			t.Errorf("%s is in neither schedulerRuns nor adminRuns: say who runs its statements, so that it is seen that he may", dir)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Of the rights of a worker, a scheduler and an administrator each is asked for by a statement that such a one runs, and these need no other.
func TestRightsThatStatementsAskFor(t *testing.T) {
	t.Parallel()
	for role, c := range map[string]struct {
		runs   map[string]string
		calls  []statement
		spared map[string]string
	}{
		"worker": {workerRuns, works, map[string]string{
			"SELECT ON schema_migrations": "asked before a client starts",
		}},
		"scheduler": {schedulerRuns, append(cancels, enqueues), map[string]string{
			"SELECT ON schema_migrations": "asked before a client starts",
		}},
		"admin": {adminRuns, slices.Concat(cancels, operates, []statement{enqueues}), map[string]string{
			"SELECT ON schema_migrations": "asked before a command does anything",

			// pelton.erase_job blanks what has ended, which there is nothing of here: TestRolesTogether erases as this role.
			"UPDATE ON job": "erase", "UPDATE ON job_attempt": "erase", "DELETE ON job_log": "erase", "UPDATE (before) ON audit": "erase",
			"UPDATE (after) ON audit": "erase", "UPDATE (outputs) ON flow_node": "erase", "UPDATE (reason) ON flow_node": "erase",
			"UPDATE (item) ON flow_node": "erase", "UPDATE (text) ON alert_state": "erase",
			"UPDATE (evaluated_at) ON alert_turn": "erase", "UPDATE (output) ON flow_report": "erase", "UPDATE (error) ON flow_report": "erase",
		}},
	} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			s := newShell(t)
			mine := s.granted(role)
			all := append(statementsOf(t, c.runs), c.calls...)
			for _, one := range all {
				if err := mine.denies(one); err != nil {
					t.Error(err)
				}
			}
			s.needsEach(role, mine.role, c.spared, func(object string) error {
				for _, names := range []bool{true, false} {
					for _, one := range all {
						if strings.Contains(one.sql, "."+object) != names {
							continue
						}
						if err := mine.denies(one); err != nil {
							return err
						}
					}
				}
				return nil
			})
		})
	}
}

package schema

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// retireJobs drops partitions of job and job_attempt that are past their retention. Neighbours go together: what must live on is
// copied out of them into one table, which then takes their place, so job_old grows to the end of the last one dropped.
// A partition with too many survivors stays; those behind it get an _old partition of their own.
func (p *pass) retireJobs(ctx context.Context) error {
	all, now, err := p.list(ctx, false)
	if err != nil {
		return err
	}
	deadline := now.Add(-p.config.Retention.Jobs)
	var run []span
	var faults []error
	finish := func() {
		if worthIt(run) {
			faults = append(faults, p.replace(ctx, join(run), deadline))
		}
		run = nil
	}
	for _, s := range spans(of(all, tableJob), of(all, tableAttempt)) {
		if s.old() {
			run = append(run, s)
			continue
		}
		if s.to > idOf(deadline) {
			break
		}
		stays, err := p.stays(ctx, s, deadline)
		if err != nil {
			faults = append(faults, err)
		}
		if err != nil || stays {
			finish()
			continue
		}
		run = append(run, s)
	}
	finish()
	return errors.Join(faults...)
}

// worthIt tells whether a run has anything to drop.
func worthIt(run []span) bool {
	for _, s := range run {
		if !s.old() {
			return true
		}
	}
	return false
}

// antiJoin keeps the search for survivors from comparing all jobs with all attempts, which the planner likes when it has
// no statistics.
const antiJoin = "SET LOCAL enable_nestloop = off"

// stays tells whether a span has too many survivors. Counting them reads the whole of it, so the answer holds for a while.
func (p *pass) stays(ctx context.Context, s span, deadline time.Time) (bool, error) {
	if !p.kept.due(s.jobs[0].oid) {
		p.keep(s)
		return true, nil
	}
	var n int
	err := p.long(ctx, func(tx pgx.Tx) error {
		if err := run(ctx, tx, antiJoin); err != nil {
			return err
		}
		return tx.QueryRow(ctx, p.sql.Get("survivors"), pgx.QueryExecModeExec, s.from, s.to, deadline).Scan(&n)
	})
	if err != nil {
		return false, fmt.Errorf("count what outlives %q: %w", s.jobs[0].Name, err)
	}
	if n <= p.config.MaxSurvivors {
		return false, nil
	}
	p.kept.done(s.jobs[0].oid)
	p.keep(s)
	return true, nil
}

func (p *pass) keep(s span) {
	for _, part := range s.jobs {
		p.report.Kept = append(p.report.Kept, part.Name)
	}
}

// replace puts the survivors of a span in the place of its partitions:
//
//  1. triggers on them note which jobs change from now on;
//  2. the survivors are copied, which may take long and blocks nobody;
//  3. under the locks, what was noted is copied anew, and the copy takes the place.
//
// A job can change only by a row that comes or goes in job or job_attempt, so nothing else has to be looked at under the locks.
func (p *pass) replace(ctx context.Context, s span, deadline time.Time) error {
	fail := func(err error) error {
		if err != nil {
			return fmt.Errorf("replace partitions of job up to %s: %w", timeOf(s.to).Format(time.RFC3339), err)
		}
		return nil
	}
	p.copies++
	done, err := p.note(ctx, s)
	if err != nil || !done {
		return fail(err)
	}
	if err := p.failpoint("noted"); err != nil {
		return err
	}
	n, err := p.copySurvivors(ctx, s, deadline)
	if err != nil {
		return fail(err)
	}
	if err := p.failpoint("copied"); err != nil {
		return err
	}
	done, err = p.swap(ctx, s)
	if err != nil || !done {
		return fail(err)
	}
	p.report.Survivors += n
	for _, part := range slices.Concat(s.jobs, s.attempts) {
		if part.State != PartitionOld {
			p.report.Dropped = append(p.report.Dropped, part.Name)
		}
	}
	return p.failpoint("swapped")
}

// next and nextAttempt are the tables of the copy at hand.
func (p *pass) next() string {
	return fmt.Sprintf("%s_next_%d_%d", tableJob, p.no, p.copies)
}

func (p *pass) nextAttempt() string {
	return fmt.Sprintf("%s_next_%d_%d", tableAttempt, p.no, p.copies)
}

// statement is one that names the tables of the copy.
func (p *pass) statement(name string) string {
	return strings.NewReplacer("{next}", p.table(p.next()), "{next_attempt}", p.table(p.nextAttempt())).Replace(p.sql.Get(name))
}

// note sets the triggers. Their lock waits for whoever is writing to the partition, so a change is either noted or seen by the copy.
func (p *pass) note(ctx context.Context, s span) (bool, error) {
	for _, part := range slices.Concat(s.attempts, s.jobs) {
		done, err := p.ddl(ctx, "note changes of "+part.Name, []string{part.Name}, func(tx pgx.Tx) error {
			return run(ctx, tx, fmt.Sprintf("CREATE OR REPLACE TRIGGER note_move AFTER INSERT OR UPDATE OR DELETE ON %s"+
				" FOR EACH ROW EXECUTE FUNCTION %s('%d', '%s')", p.table(part.Name), p.table("note_move"), p.no, keyColumn(part.Parent)))
		})
		if err != nil || !done {
			return false, err
		}
	}
	return true, nil
}

// copySurvivors makes the copy, proved by constraints to fit into the place, and catches up once with what changed meanwhile.
func (p *pass) copySurvivors(ctx context.Context, s span, deadline time.Time) (n int, err error) {
	var create []string
	for _, c := range []struct{ next, table string }{{p.next(), tableJob}, {p.nextAttempt(), tableAttempt}} {
		key := keyColumn(c.table)
		fits := fmt.Sprintf("%s < %d", key, s.to)
		if s.from != math.MinInt64 {
			fits = fmt.Sprintf("%s >= %d AND %s", key, s.from, fits)
		}
		create = append(create, p.createLike(c.next, c.table),
			fmt.Sprintf("ALTER TABLE %s SET (vacuum_truncate = off), ADD CONSTRAINT %s CHECK (%s)", p.table(c.next), closeCheck, fits))
	}
	if err := p.tx(ctx, func(tx pgx.Tx) error { return run(ctx, tx, create...) }); err != nil {
		return 0, fmt.Errorf("make tables for the survivors: %w", err)
	}
	if err := p.failpoint("made next"); err != nil {
		return 0, err
	}
	err = p.long(ctx, func(tx pgx.Tx) error {
		if err := run(ctx, tx, antiJoin); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, p.statement("copy_jobs"), pgx.QueryExecModeExec, s.from, s.to, deadline)
		if err != nil {
			return fmt.Errorf("copy jobs: %w", err)
		}
		n = int(tag.RowsAffected())
		if err := run(ctx, tx, "SET LOCAL enable_nestloop = on"); err != nil {
			return err
		}
		if err := run(ctx, tx, "ANALYZE "+p.table(p.next())); err != nil {
			return fmt.Errorf("analyze the copy: %w", err)
		}
		if _, err := tx.Exec(ctx, p.statement("copy_attempts"), pgx.QueryExecModeExec, s.from, s.to); err != nil {
			return fmt.Errorf("copy attempts: %w", err)
		}
		return run(ctx, tx, "ANALYZE "+p.table(p.nextAttempt()))
	})
	if err != nil {
		return 0, err
	}
	return n, p.long(ctx, func(tx pgx.Tx) error { return p.catchUp(ctx, tx) })
}

// catchUp copies anew the jobs that changed since they were copied, or since the last time.
func (p *pass) catchUp(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, p.sql.Get("take_moved"), p.no)
	if err != nil {
		return fmt.Errorf("catch up: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return fmt.Errorf("catch up: %w", err)
	}
	if len(ids) == 0 {
		return nil
	}
	for _, name := range []string{"forget_jobs", "forget_attempts", "recopy_jobs", "recopy_attempts"} {
		if _, err := tx.Exec(ctx, p.statement(name), pgx.QueryExecModeExec, ids); err != nil {
			return fmt.Errorf("catch up: %s: %w", name, err)
		}
	}
	return nil
}

// swap puts the copy in the place of the span's partitions, which become tables on their own, to be dropped later.
func (p *pass) swap(ctx context.Context, s span) (bool, error) {
	var tables []string
	for _, part := range slices.Concat(s.attempts, s.jobs) {
		tables = append(tables, part.Name)
	}
	tables = append(tables, tableAttempt, tableJob) // job last: an enqueue waits only for this one lock
	advisory := fmt.Sprintf("SELECT pg_advisory_xact_lock(%s(k)) FROM unnest(%s) k", p.table("partition_lock"), oids(s.jobs))
	return p.ddl(ctx, "swap "+s.jobs[len(s.jobs)-1].Name, tables, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, advisory); err != nil {
			return fmt.Errorf("lock out changes of finished jobs: %w", err)
		}
		if err := p.lock(ctx, tx, tables...); err != nil {
			return err
		}
		if err := p.failpoint("locked"); err != nil {
			return err
		}
		if err := p.catchUp(ctx, tx); err != nil {
			return err
		}
		if err := run(ctx, tx, p.swapSQL(s)...); err != nil {
			return err
		}
		return p.failpoint("swapping")
	})
}

func (p *pass) swapSQL(s span) (statements []string) {
	for _, c := range []struct {
		next, table string
		parts       []Partition
	}{{p.next(), tableJob, s.jobs}, {p.nextAttempt(), tableAttempt, s.attempts}} {
		parent, place := p.table(c.table), c.table+"_old"
		if s.from != math.MinInt64 {
			place = nameFrom(c.table, "old", s.from)
		}
		for _, part := range c.parts {
			statements = append(statements,
				fmt.Sprintf("ALTER TABLE %s DETACH PARTITION %s", parent, p.table(part.Name)),
				fmt.Sprintf("ALTER TABLE %s RENAME TO %s", p.table(part.Name), quoted(p.gone(c.table))))
		}
		statements = append(statements,
			fmt.Sprintf("ALTER TABLE %s RENAME TO %s", p.table(c.next), quoted(place)),
			fmt.Sprintf("ALTER TABLE %s ATTACH PARTITION %s %s", parent, p.table(place), boundSQL(s.from, s.to)),
			fmt.Sprintf("ALTER TABLE %s DROP CONSTRAINT %s", p.table(place), closeCheck))
	}
	return statements
}

// gone makes a name for a table that is to be dropped.
func (p *pass) gone(table string) string {
	p.taken++
	return fmt.Sprintf("%s_gone_%d_%d", table, p.no, p.taken)
}

// retireLogs drops partitions of job_log that are past their retention.
func (p *pass) retireLogs(ctx context.Context) error {
	all, now, err := p.list(ctx, false)
	if err != nil {
		return err
	}
	deadline := idOf(now.Add(-p.config.Retention.Logs))
	parent := p.table(tableLog)
	var tables, statements []string
	for _, part := range of(all, tableLog) {
		if part.To > deadline {
			break
		}
		tables = append(tables, part.Name)
		statements = append(statements,
			fmt.Sprintf("ALTER TABLE %s DETACH PARTITION %s", parent, p.table(part.Name)),
			fmt.Sprintf("ALTER TABLE %s RENAME TO %s", p.table(part.Name), quoted(p.gone(tableLog))))
	}
	if len(tables) == 0 {
		return nil
	}
	locks := slices.Concat(tables, []string{tableLog})
	done, err := p.ddl(ctx, "detach old partitions of job_log", locks, func(tx pgx.Tx) error {
		if err := p.lock(ctx, tx, locks...); err != nil {
			return err
		}
		if err := run(ctx, tx, statements...); err != nil {
			return err
		}
		return p.failpoint("detaching logs")
	})
	if err != nil || !done {
		return err
	}
	p.report.Dropped = append(p.report.Dropped, tables...)
	return p.failpoint("detached logs")
}

// clean removes what passes left: tables taken out, copies and tables made ahead that never got to their place, and notes.
func (p *pass) clean(ctx context.Context) error {
	rows, err := p.pool.Query(ctx, p.sql.Get("leftovers"))
	if err != nil {
		return fmt.Errorf("look for leftovers: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("look for leftovers: %w", err)
	}
	for _, name := range names {
		if err := p.drop(ctx, name); err != nil {
			return err
		}
	}
	const forget = "DELETE FROM %s WHERE pass <> $1"
	err = p.tx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, fmt.Sprintf(forget, p.table("job_moved")), p.no)
		return err
	})
	if err != nil {
		return fmt.Errorf("forget notes: %w", err)
	}
	return nil
}

// drop drops a leftover, unless somebody may have taken it out to keep it.
func (p *pass) drop(ctx context.Context, name string) error {
	ours := strings.Contains(name, "_gone_") || strings.Contains(name, "_next_")
	orphan := false
	_, err := p.ddl(ctx, "drop "+name, []string{name}, func(tx pgx.Tx) error {
		if !ours {
			if err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM "+p.table(name)+")").Scan(&orphan); err != nil || orphan {
				return err
			}
		}
		if err := run(ctx, tx, "DROP TABLE "+p.table(name)); err != nil {
			return err
		}
		return p.failpoint("dropping")
	})
	if orphan {
		p.report.Orphans = append(p.report.Orphans, name)
	}
	return err
}

package schema

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// closeCheck is the constraint that proves that an open-ended partition has an end, so that it need not be read under the parent's lock.
const closeCheck = "pelton_close"

// aheadCheck is the constraint of job's open-ended partition that refuses ids far ahead. Partitions that have an end are spared its cost.
const aheadCheck = "job_not_far_ahead"

func (p *pass) extendAll(ctx context.Context) error {
	var faults []error
	for _, table := range partitioned {
		if err := p.extend(ctx, table); err != nil {
			faults = append(faults, fmt.Errorf("partitions ahead of %q: %w", table, err))
		}
	}
	return errors.Join(faults...)
}

// extend makes partitions ahead once there are fewer than Low, for job_attempt as soon as job has more. The open-ended one must be
// empty for that; if it has rows, maintenance was away for longer than the partitions lasted, or never came, and it is closed first.
func (p *pass) extend(ctx context.Context, table string) error {
	for closed := false; ; closed = true {
		all, now, err := p.list(ctx, false)
		if err != nil {
			return err
		}
		parts := of(all, table)
		if len(parts) == 0 || parts[len(parts)-1].To != math.MaxInt64 {
			return fmt.Errorf("%q has no open-ended partition", table)
		}
		rest := parts[len(parts)-1]
		var ends, jobEnds []int64
		if table == tableAttempt {
			jobEnds = endsAfter(of(all, tableJob), rest.From)
			ends = jobEnds
		} else if countAhead(parts) < p.config.Low {
			ends = p.bounds(rest.From, now)
		}
		if len(ends) == 0 {
			return nil
		}
		if err := p.dropStrays(ctx, rest); err != nil {
			return err
		}
		top, err := p.topID(ctx, rest)
		if err != nil {
			return err
		}
		if top == nil {
			return p.attachAll(ctx, rest, ends)
		}
		if closed {
			return nil // rows came in beyond the new end: a clock that steps; the next pass looks again
		}
		done, err := p.close(ctx, rest, p.closingBound(*top, now, jobEnds))
		if err != nil || !done {
			return err
		}
	}
}

// dropStrays drops attempts of jobs far ahead that are not there, which nobody could be told of: a ticket of such ids, which whoever may enqueue can write, ends
// with an error under them. They would stretch the partition that is closed behind them over years.
func (p *pass) dropStrays(ctx context.Context, rest Partition) error {
	if rest.Parent != tableAttempt {
		return nil
	}
	sql := fmt.Sprintf("DELETE FROM %s a WHERE a.job_id >= %s(clock_timestamp() + interval '1 day') AND NOT EXISTS (SELECT FROM %s j WHERE j.id = a.job_id)",
		p.table(rest.Name), p.table("id_at"), p.table(tableJob))
	if err := p.tx(ctx, func(tx pgx.Tx) error { return run(ctx, tx, sql) }); err != nil {
		return fmt.Errorf("drop attempts of no job from %q: %w", rest.Name, err)
	}
	return nil
}

func endsAfter(parts []Partition, from int64) (ends []int64) {
	for _, part := range parts {
		if part.To > from && part.To != math.MaxInt64 {
			ends = append(ends, part.To)
		}
	}
	return ends
}

func countAhead(parts []Partition) (n int) {
	for _, part := range parts {
		if part.State == PartitionAhead {
			n++
		}
	}
	return n
}

// topID is the greatest id in a partition, nil if it is empty.
func (p *pass) topID(ctx context.Context, part Partition) (top *int64, err error) {
	sql := fmt.Sprintf("SELECT max(%s) FROM %s", keyColumn(part.Parent), p.table(part.Name))
	if part.Parent == tableLog || part.Parent == tableTick { // their keys do not begin with the time
		sql = fmt.Sprintf("SELECT max(%[1]s) FROM (SELECT %[1]s FROM %[2]s LIMIT 1) l", keyColumn(part.Parent), p.table(part.Name))
	}
	if err := p.tx(ctx, func(tx pgx.Tx) error { return tx.QueryRow(ctx, sql).Scan(&top) }); err != nil {
		return nil, fmt.Errorf("look into %q: %w", part.Name, err)
	}
	return top, nil
}

// size is how many ids stand for one partition.
func (p *pass) size() int64 { return int64(p.config.PartitionSize/time.Second) << idBits }

// bounds are the ends of the partitions to make from an id on: the first reaches into the present, Ahead ones follow.
func (p *pass) bounds(from int64, now time.Time) (ends []int64) {
	size := p.size()
	current := idOf(now) / size * size
	last := current + int64(p.config.Ahead+1)*size
	if last < from+int64(p.config.Low)*size { // behind one that was closed
		last = from + int64(p.config.Ahead)*size
	}
	for end := max(from, current)/size*size + size; end <= last; end += size {
		ends = append(ends, end)
	}
	return ends
}

// closingBound is far enough ahead that no insert meets it before the closing is done: ids beyond are refused from the moment the
// constraint is there until the new open-ended partition is. Seven partitions, so that maintenance may even die in between.
// If one of the ends given will do, it is that.
func (p *pass) closingBound(top int64, now time.Time, ends []int64) int64 {
	size := p.size()
	lead := max(time.Duration(min(7, p.config.Ahead))*p.config.PartitionSize, time.Hour)
	least := max(idOf(now.Add(lead)), top+1)
	for _, end := range ends {
		if end >= least {
			return end
		}
	}
	return least/size*size + size
}

// attachAtOnce bounds the partitions attached in one transaction, each of which takes about a millisecond under the parent's lock.
const attachAtOnce = 8

// attachAll makes partitions up to the ends given and moves the empty open-ended one along, a few in each transaction.
func (p *pass) attachAll(ctx context.Context, rest Partition, ends []int64) error {
	for some := range slices.Chunk(ends, attachAtOnce) {
		done, err := p.attach(ctx, rest, some)
		if err != nil || !done {
			return err
		}
		rest.From = some[len(some)-1]
	}
	return nil
}

// attach makes partitions up to the ends given and moves the empty open-ended one behind them, in one short transaction. It is
// not done if the open-ended one has got rows meanwhile: the next pass closes it.
func (p *pass) attach(ctx context.Context, rest Partition, ends []int64) (done bool, err error) {
	parent := p.table(rest.Parent)
	step := fmt.Sprintf("attach %d partitions to %s", len(ends), rest.Parent)
	var names, create []string
	move := []string{fmt.Sprintf("ALTER TABLE %s DETACH PARTITION %s", parent, p.table(rest.Name))}
	from := rest.From
	for _, end := range ends {
		name := nameFrom(rest.Parent, "p", from)
		names = append(names, name)
		create = append(create, p.createLike(name, rest.Parent))
		move = append(move, fmt.Sprintf("ALTER TABLE %s ATTACH PARTITION %s %s", parent, p.table(name), boundSQL(from, end)))
		from = end
	}
	move = append(move, fmt.Sprintf("ALTER TABLE %s ATTACH PARTITION %s %s", parent, p.table(rest.Name), boundSQL(from, math.MaxInt64)))
	if err := p.tx(ctx, func(tx pgx.Tx) error { return run(ctx, tx, create...) }); err != nil {
		return false, fmt.Errorf("%s: create: %w", step, err)
	}
	if err := p.failpoint("created " + rest.Parent); err != nil {
		return false, err
	}
	filled := false
	done, err = p.ddl(ctx, step, []string{rest.Name, rest.Parent}, func(tx pgx.Tx) error {
		if err := p.lock(ctx, tx, rest.Name, rest.Parent); err != nil {
			return err
		}
		look := "SELECT EXISTS (SELECT FROM " + p.table(rest.Name) + ")"
		if err := tx.QueryRow(ctx, look).Scan(&filled); err != nil || filled {
			return err
		}
		if err := run(ctx, tx, move...); err != nil {
			return err
		}
		return p.failpoint("attached " + rest.Parent)
	})
	if err != nil || !done || filled {
		return false, err
	}
	p.report.Created = append(p.report.Created, names...)
	return true, nil
}

// createLike makes a table that can become a partition, without a lock that anybody waits for.
func (p *pass) createLike(name, parent string) string {
	return fmt.Sprintf("CREATE TABLE %s (LIKE %s INCLUDING ALL)", p.table(name), p.table(parent))
}

// close gives the open-ended partition an end ahead of time, proved by a constraint, and puts a new one behind it.
func (p *pass) close(ctx context.Context, rest Partition, end int64) (bool, error) {
	table, parent, key := p.table(rest.Name), p.table(rest.Parent), keyColumn(rest.Parent)
	check := fmt.Sprintf("%s < %d", key, end)
	if rest.From != math.MinInt64 {
		check = fmt.Sprintf("%s >= %d AND %s", key, rest.From, check)
	}
	done, err := p.ddl(ctx, "put an end to "+rest.Name, []string{rest.Name}, func(tx pgx.Tx) error {
		return run(ctx, tx, fmt.Sprintf("ALTER TABLE %s DROP CONSTRAINT IF EXISTS %s, ADD CONSTRAINT %[2]s CHECK (%s) NOT VALID",
			table, closeCheck, check))
	})
	if err := errors.Join(err, p.failpoint("constrained "+rest.Parent)); err != nil || !done {
		return false, err
	}
	done, err = p.ddl(ctx, "validate the end of "+rest.Name, []string{rest.Name}, func(tx pgx.Tx) error {
		return run(ctx, tx, "SET LOCAL statement_timeout = 0", fmt.Sprintf("ALTER TABLE %s VALIDATE CONSTRAINT %s", table, closeCheck))
	})
	if err := errors.Join(err, p.failpoint("validated "+rest.Parent)); err != nil || !done {
		return false, err
	}
	next := fmt.Sprintf("%s_next_%d", rest.Parent, p.no)
	create, spare := []string{p.createLike(next, rest.Parent)}, []string(nil)
	name := nameFrom(rest.Parent, "p", rest.From)
	if rest.Parent == tableJob {
		create = append(create, fmt.Sprintf("ALTER TABLE %s ADD CONSTRAINT %s CHECK (NOT %s(id))", p.table(next), aheadCheck, p.table("is_far_ahead")))
		spare = append(spare, fmt.Sprintf("ALTER TABLE %s DROP CONSTRAINT IF EXISTS %s", p.table(name), aheadCheck))
	}
	if err := p.tx(ctx, func(tx pgx.Tx) error { return run(ctx, tx, create...) }); err != nil {
		return false, fmt.Errorf("make the next %s: %w", rest.Name, err)
	}
	if err := p.failpoint("made next " + rest.Parent); err != nil {
		return false, err
	}
	done, err = p.ddl(ctx, "close "+rest.Name, []string{rest.Name, rest.Parent}, func(tx pgx.Tx) error {
		if err := p.lock(ctx, tx, rest.Name, rest.Parent); err != nil {
			return err
		}
		err := run(ctx, tx, append([]string{
			fmt.Sprintf("ALTER TABLE %s DETACH PARTITION %s", parent, table),
			fmt.Sprintf("ALTER TABLE %s RENAME TO %s", table, quoted(name)),
			fmt.Sprintf("ALTER TABLE %s ATTACH PARTITION %s %s", parent, p.table(name), boundSQL(rest.From, end)),
			fmt.Sprintf("ALTER TABLE %s DROP CONSTRAINT %s", p.table(name), closeCheck),
			fmt.Sprintf("ALTER TABLE %s RENAME TO %s", p.table(next), quoted(rest.Name)),
			fmt.Sprintf("ALTER TABLE %s ATTACH PARTITION %s %s", parent, table, boundSQL(end, math.MaxInt64)),
		}, spare...)...)
		if err != nil {
			return err
		}
		return p.failpoint("closed " + rest.Parent)
	})
	if done {
		p.report.Closed = append(p.report.Closed, name)
	}
	return done, err
}

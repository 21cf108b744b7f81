package joblog

import (
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// rows is a batch by columns.
type rows struct {
	ids, jobIDs, pos, ages []int64
	runs                   []int32
	streams                []string
	data                   [][]byte
}

// rows numbers the chunks that were not sent before, and puts the batch into columns.
func (w *Writer) rows(batch []*chunk) *rows {
	var r rows
	second := idAt(w.clock.now())
	for _, c := range batch {
		if c.id == 0 {
			c.run.number(c, second)
		}
		r.ids = append(r.ids, c.id)
		r.jobIDs = append(r.jobIDs, c.run.jobID)
		r.runs = append(r.runs, c.run.run)
		r.streams = append(r.streams, string(c.stream))
		r.pos = append(r.pos, c.pos)
		r.ages = append(r.ages, time.Since(c.born).Microseconds())
		r.data = append(r.data, c.data)
	}
	return &r
}

func (r *rows) args() []any {
	return []any{r.ids, r.jobIDs, r.runs, r.streams, r.pos, r.ages, r.data}
}

// clock knows the database's time from the last answer and the time gone by since.
type clock struct {
	at   time.Time // by the database
	read time.Time // when that was, by this process
}

func (c *clock) known() bool { return !c.at.IsZero() }

func (c *clock) now() time.Time { return c.at.Add(time.Since(c.read)) }

func (c *clock) set(row pgx.Row) error {
	var at time.Time
	if err := row.Scan(&at); err != nil {
		return err
	}
	c.at, c.read = at, time.Now()
	return nil
}

// isRefusal tells whether the database will never take the statement's data, whatever happens: bad data, a violated
// constraint (no partition for the id), a limit of the program.
func isRefusal(err error) bool {
	var e *pgconn.PgError
	if !errors.As(err, &e) || len(e.Code) != 5 {
		return false
	}
	switch e.Code[:2] {
	case "22", "23", "54":
		return true
	}
	return false
}

package jobs

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs/internal/store"
)

// JobListCursor is where a page of a list of jobs ended. As text it is opaque and fit for URLs.
type JobListCursor struct {
	id    int64
	order store.JobOrder
	time  *time.Time // of the order; nil: none
	job   *rivertype.JobRow
}

// JobListCursorFromJob makes a cursor that continues a list, whatever its order, after a job. It cannot be turned into text.
func JobListCursorFromJob(job *rivertype.JobRow) *JobListCursor {
	return &JobListCursor{job: job}
}

func cursorAt(job *rivertype.JobRow, order store.JobOrder) *JobListCursor {
	cursor := &JobListCursor{id: job.ID, order: order}
	switch order {
	case store.OrderByScheduledAt:
		cursor.time = &job.ScheduledAt
	case store.OrderByAttemptedAt:
		cursor.time = job.AttemptedAt
	case store.OrderByFinalizedAt:
		cursor.time = job.FinalizedAt
	case store.OrderByID:
	}
	return cursor
}

// ErrBadCursor is returned for a cursor of a list with another order.
var ErrBadCursor = errors.New("list jobs: the cursor comes from a list with another order")

// position is where a list with this order goes on.
func (c *JobListCursor) position(order store.JobOrder) (int64, *time.Time, error) {
	if c.job != nil {
		c = cursorAt(c.job, order)
	}
	if c.order != order {
		return 0, nil, ErrBadCursor
	}
	return c.id, c.time, nil
}

type cursorText struct {
	ID    int64          `json:"id"`
	Order store.JobOrder `json:"order,omitempty"`
	Time  *time.Time     `json:"time,omitempty"`
}

// MarshalText implements encoding.TextMarshaler.
func (c *JobListCursor) MarshalText() ([]byte, error) {
	if c.job != nil {
		return nil, errors.New("a cursor made from a job cannot be turned into text; use a list's LastCursor")
	}
	text, err := json.Marshal(cursorText{ID: c.id, Order: c.order, Time: c.time})
	if err != nil {
		return nil, fmt.Errorf("encode cursor: %w", err)
	}
	return base64.URLEncoding.AppendEncode(nil, text), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *JobListCursor) UnmarshalText(text []byte) error {
	decoded, err := base64.URLEncoding.AppendDecode(nil, text)
	if err != nil {
		return fmt.Errorf("decode cursor: %w", err)
	}
	var parsed cursorText
	if err := json.Unmarshal(decoded, &parsed); err != nil {
		return fmt.Errorf("decode cursor: %w", err)
	}
	switch parsed.Order {
	case store.OrderByID, store.OrderByScheduledAt, store.OrderByAttemptedAt, store.OrderByFinalizedAt:
	default:
		return fmt.Errorf("decode cursor: unknown order %q", parsed.Order)
	}
	*c = JobListCursor{id: parsed.ID, order: parsed.Order, time: parsed.Time}
	return nil
}

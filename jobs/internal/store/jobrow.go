package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/internal/sqlfile"
	"github.com/peltonq/pelton/jobs/internal/state"
)

// rowsPage is the most jobs read by one statement, which is quadratic in their number.
const rowsPage = 200

// JobRows reads jobs by id, each from one snapshot, in the order of the ids. Jobs that do not exist are left out.
func (s *Store) JobRows(ctx context.Context, db DB, ids ...int64) ([]*rivertype.JobRow, error) {
	jobs, _, err := s.jobRows(ctx, db, 0, ids)
	return jobs, err
}

// jobRows is JobRows that stops when the jobs take so many bytes (0: no bound), one at least, and tells whether others follow.
func (s *Store) jobRows(ctx context.Context, db DB, bytes int, ids []int64) (jobs []*rivertype.JobRow, more bool, err error) {
	jobs = make([]*rivertype.JobRow, 0, len(ids))
	size, most := 0, rowsPage
	if bytes > 0 {
		most = firstPiece
	}
	for len(ids) > 0 {
		page := ids[:min(len(ids), most)]
		ids, most = ids[len(page):], min(2*most, rowsPage)
		rows, err := db.Query(ctx, s.sql.Get("job_rows"), page)
		if err != nil {
			return nil, false, fmt.Errorf("read jobs: %w", err)
		}
		for rows.Next() {
			if bytes > 0 && size >= bytes {
				rows.Close()
				return jobs, true, nil
			}
			size += rowBytes(rows)
			job, err := scanJobRow(rows)
			if err != nil {
				rows.Close()
				return nil, false, fmt.Errorf("read jobs: %w", err)
			}
			jobs = append(jobs, job)
		}
		if err := rows.Err(); err != nil {
			return nil, false, fmt.Errorf("read jobs: %w", err)
		}
	}
	return jobs, false, nil
}

// MayReadJobs tells whether the session's role may read jobs (JobRows). A role that may once is not asked again.
func (s *Store) MayReadJobs(ctx context.Context, db DB) (bool, error) {
	if s.reads.Load() {
		return true, nil
	}
	may, err := sqlfile.Rows(ctx, s.sql, db, pgx.RowTo[bool], "may_read_jobs")
	if err != nil {
		return false, err
	}
	s.reads.Store(may[0])
	return may[0], nil
}

// JobRow reads one job, or returns rivertype.ErrNotFound.
func (s *Store) JobRow(ctx context.Context, db DB, id int64) (*rivertype.JobRow, error) {
	jobs, err := s.JobRows(ctx, db, id)
	if err != nil {
		return nil, err
	}
	if len(jobs) == 0 {
		return nil, fmt.Errorf("job %d: %w", id, rivertype.ErrNotFound)
	}
	return jobs[0], nil
}

// scanJobRow reads a row of job_rows. The output goes into the metadata, where River's JobRow.Output looks for it.
func scanJobRow(row pgx.CollectableRow) (*rivertype.JobRow, error) {
	var (
		job            rivertype.JobRow
		run            int32
		args, metadata string
		output         *string
		failures       []byte
		unique         int16
	)
	err := row.Scan(&job.ID, &job.Kind, &job.Queue, &job.Priority, &job.State, &run, &job.Attempt, &job.MaxAttempts, &args, &metadata,
		&output, &job.Tags, &job.CreatedAt, &job.ScheduledAt, &job.AttemptedAt, &job.AttemptedBy, &job.FinalizedAt, &failures,
		&job.UniqueKey, &unique)
	if err != nil {
		return nil, err
	}
	if job.State == rivertype.JobStateRunning {
		job.Attempt++
	}
	job.EncodedArgs = []byte(args)
	if job.Metadata, err = withOutput(metadata, output); err != nil {
		return nil, fmt.Errorf("metadata of job %d: %w", job.ID, err)
	}
	if len(failures) > 0 {
		if err := json.Unmarshal(failures, &job.Errors); err != nil {
			return nil, fmt.Errorf("errors of job %d: %w", job.ID, err)
		}
	}
	job.UniqueStates = state.FromBits(byte(unique)) //nolint:gosec // eight states, eight bits
	return &job, nil
}

func withOutput(metadata string, output *string) ([]byte, error) {
	if output == nil {
		return []byte(metadata), nil
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(metadata), &fields); err != nil {
		return nil, err
	}
	fields[rivertype.MetadataKeyOutput] = json.RawMessage(*output)
	return json.Marshal(fields)
}

// WaitingCount is how many jobs of a queue wait or run in one state.
type WaitingCount struct {
	Queue string
	State rivertype.JobState
	Jobs  int64
}

// CountWaiting counts the jobs that wait or run, by queue and state.
func (s *Store) CountWaiting(ctx context.Context, db DB) ([]WaitingCount, error) {
	rows, err := db.Query(ctx, s.sql.Get("count_waiting"), pgx.QueryExecModeCacheDescribe)
	if err != nil {
		return nil, fmt.Errorf("count waiting jobs: %w", err)
	}
	counts, err := pgx.CollectRows(rows, pgx.RowToStructByPos[WaitingCount])
	if err != nil {
		return nil, fmt.Errorf("count waiting jobs: %w", err)
	}
	return counts, nil
}

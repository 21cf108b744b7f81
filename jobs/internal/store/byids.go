package store

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
)

// byIDs runs a read of a partitioned table by ids: $1 the ids, $2 and $3 the least and the greatest of them.
//
// It is planned anew each time, so that partitions are pruned and a generic plan does not lock them all. The planner prunes by
// the range alone: the ids come from a subselect, because for an array it knows it would look at every element (58 ms of
// planning for 1,000 ids over 40 partitions, against 0.4 ms).
func (s *Store) byIDs(ctx context.Context, db DB, name string, ids []int64) (pgx.Rows, error) {
	least, greatest := idRange(ids)
	return db.Query(ctx, s.sql.Get(name), pgx.QueryExecModeCacheDescribe, ids, least, greatest)
}

func idRange(ids []int64) (least, greatest int64) {
	if len(ids) == 0 {
		return 0, 0
	}
	return slices.Min(ids), slices.Max(ids)
}

// EarlierRuns is how many of the runs before a run are read when it is claimed or lost.
const EarlierRuns = 100

// beforeRuns is byIDs for reads of the runs before these: $4 has their numbers, $5 how many are wanted.
func (s *Store) beforeRuns(ctx context.Context, db DB, name string, runs []RunKey) (pgx.Rows, error) {
	ids, numbers := make([]int64, len(runs)), make([]int32, len(runs))
	for i, r := range runs {
		ids[i], numbers[i] = r.JobID, r.Run
	}
	least, greatest := idRange(ids)
	return db.Query(ctx, s.sql.Get(name), pgx.QueryExecModeCacheDescribe, ids, least, greatest, numbers, EarlierRuns)
}

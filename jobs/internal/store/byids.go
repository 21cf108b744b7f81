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
	least, greatest := int64(0), int64(0)
	if len(ids) > 0 {
		least, greatest = slices.Min(ids), slices.Max(ids)
	}
	return db.Query(ctx, s.sql.Get(name), pgx.QueryExecModeCacheDescribe, ids, least, greatest)
}

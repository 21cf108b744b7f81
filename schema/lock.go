package schema

import (
	"context"
	"fmt"
)

// LockPartition keeps maintenance from moving or deleting a job until the transaction ends; false means that there is no such job.
// For whoever revives, changes or deletes a job that has ended: call it first, then look at the job in a further statement, then
// write. It waits only while maintenance swaps that very partition or deletes a batch from it. tx must be READ COMMITTED.
//
// In SQL it is the function lock_job_partition.
func LockPartition(ctx context.Context, tx Querier, name string, job int64) (found bool, err error) {
	if err := tx.QueryRow(ctx, "SELECT "+quoted(name, "lock_job_partition")+"($1)", job).Scan(&found); err != nil {
		return false, fmt.Errorf("lock the partition of job %d: %w", job, err)
	}
	return found, nil
}

package jobs

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs/internal/store"
	"github.com/peltonq/pelton/schema"
)

// auditTime is how long an entry may take that is written after what it tells.
const auditTime = 10 * time.Second

// auditedIDs is how many ids of jobs an entry of the audit names.
const auditedIDs = 100

// EnqueuedBy is what a person has enqueued, as the audit tells it: never what the args are.
type EnqueuedBy struct {
	Jobs   int      `json:"jobs"`          // that are new
	IDs    []int64  `json:"ids,omitempty"` // the first 100, if they are known
	Kinds  []string `json:"kinds"`
	Queues []string `json:"queues"`
}

// EnqueuedResults is what an insert has enqueued. Duplicates do not count.
func EnqueuedResults(results ...*rivertype.JobInsertResult) EnqueuedBy {
	var e EnqueuedBy
	for _, r := range results {
		if r.UniqueSkippedAsDuplicate {
			continue
		}
		e.Jobs++
		if len(e.IDs) < auditedIDs {
			e.IDs = append(e.IDs, r.Job.ID)
		}
		e.add(r.Job.Kind, r.Job.Queue)
	}
	return e
}

// EnqueuedFast is what InsertManyFastTx has enqueued, n of these.
func EnqueuedFast(params []river.InsertManyParams, n int) EnqueuedBy {
	e := EnqueuedBy{Jobs: n}
	for _, p := range params {
		queue := river.QueueDefault
		if p.InsertOpts != nil && p.InsertOpts.Queue != "" {
			queue = p.InsertOpts.Queue
		}
		e.add(p.Args.Kind(), queue)
	}
	return e
}

func (e *EnqueuedBy) add(kind, queue string) {
	insert := func(list *[]string, text string) {
		if at, there := slices.BinarySearch(*list, text); !there {
			*list = slices.Insert(*list, at, text)
		}
	}
	insert(&e.Kinds, kind)
	insert(&e.Queues, queue)
}

// AuditInsertTx writes into the audit table, in the transaction that enqueues, what the context's actor (WithActor), a person, has enqueued: as job.enqueue, of the
// job or of "jobs". Inserts by themselves leave no entry: programs enqueue all day. A database role that may not write the audit leaves none.
func (c *Client) AuditInsertTx(ctx context.Context, tx pgx.Tx, enqueued EnqueuedBy) error {
	if enqueued.Jobs == 0 {
		return nil
	}
	after, err := json.Marshal(enqueued)
	if err != nil {
		return err
	}
	target := "jobs"
	if enqueued.Jobs == 1 && len(enqueued.IDs) == 1 {
		target = strconv.FormatInt(enqueued.IDs[0], 10)
	}
	return c.store.RecordAudit(ctx, tx, c.AuditedActor(ctx), "job.enqueue", target, string(after))
}

// AuditMaintenance writes into the audit table which partitions maintenance has dropped and how many rows it has deleted, when the context's actor, a person, asked for
// it: as partition.maintain. Maintenance that a process does by itself leaves no entry.
func (c *Client) AuditMaintenance(ctx context.Context, report schema.Report) error {
	if report.Busy {
		return nil
	}
	deleted := map[string]int{}
	for table, n := range report.Deleted {
		if n > 0 {
			deleted[table] = n
		}
	}
	after, err := json.Marshal(map[string]any{"dropped": append([]string{}, report.Dropped...), "deleted": deleted})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditTime)
	defer cancel()
	return c.operate(ctx, func(db store.DB) error {
		return c.store.RecordAudit(ctx, db, c.AuditedActor(ctx), "partition.maintain", "partitions", string(after))
	})
}

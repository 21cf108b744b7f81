// Package jobs is the queue: a client that enqueues jobs in the caller's own transaction and works them.
//
// Workers are written to River's public contract (river.JobArgs, river.Worker, river.Job, river.InsertOpts): a worker written
// for River compiles and runs here unchanged. What River's public packages cannot give has a twin here: RecordOutput,
// MetadataSet, CompleteTx, ClientFromContext.
//
// A job runs at least once, and each of its runs ends exactly once in job_attempt: a completion by somebody who lost the job
// is refused. A committed enqueue is never lost.
package jobs

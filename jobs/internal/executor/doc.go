// Package executor claims runs and has them worked: one per client process, with a claim loop per queue.
//
// # How it works
//
// Each queue has slots. Its claim loop takes at most as many jobs as slots are free, reads them, and hands them to goroutines
// that live on. A worker's result goes to the finisher, which records results in batches. Used-up leases are deleted after
// their results were recorded. An empty queue rests: it registers as a sleeper, looks once more, watches those who were
// writing at that moment, and waits for a hint or the poller.
//
// # What the database is the authority for
//
// Whether a run is ours: only the key (job_id, run) in job_attempt decides. A result that comes too late is refused, logged, and
// has no effect. Leases are only the reaper's list.
//
// # On failure
//
// A claim whose answer was lost leaves leases that nobody works; the heartbeat reports them and they are handed back. A
// finish that fails is split until only what cannot be recorded is left, and repeated until it is recorded or the
// executor is stopped for good. A heartbeat that finds its row marked dead makes a new incarnation and cancels what ran.
package executor

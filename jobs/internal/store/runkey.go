package store

// RunKey names a run.
type RunKey struct {
	JobID int64
	Run   int32
}

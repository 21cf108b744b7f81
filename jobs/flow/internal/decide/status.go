package decide

import "fmt"

// Status is the status of a node or of a run, spelled as Azkaban does: it is the same word in rows, JSON and on the page.
type Status string

// The statuses.
const (
	Ready           Status = "READY"            // node: has not started
	Disabled        Status = "DISABLED"         // node: has not started, and will be skipped
	Preparing       Status = "PREPARING"        // run: is being made
	Queued          Status = "QUEUED"           // node: its job exists; run: waits for others to end
	Running         Status = "RUNNING"          // run, embedded flow, for_each; of a job's node for display, when its job has started
	Paused          Status = "PAUSED"           // run: what runs goes on, nothing starts
	FailedFinishing Status = "FAILED_FINISHING" // run: a node has failed, others still run
	Killing         Status = "KILLING"          // is being killed
	Succeeded       Status = "SUCCEEDED"
	FailedSucceeded Status = "FAILED_SUCCEEDED" // node: failed, which its job.succeed.on.failure makes a success
	Skipped         Status = "SKIPPED"          // node: disabled, and passed
	Failed          Status = "FAILED"
	Killed          Status = "KILLED"
	Cancelled       Status = "CANCELLED" // node: will not start
)

// ParseStatus returns the status that a text spells.
func ParseStatus(text string) (Status, error) {
	switch s := Status(text); s {
	case Ready, Disabled, Preparing, Queued, Running, Paused, FailedFinishing, Killing, Succeeded, FailedSucceeded, Skipped, Failed, Killed,
		Cancelled:
		return s, nil
	default:
		return "", fmt.Errorf("%q is no status", text)
	}
}

// RunStatuses are those that a run may have.
func RunStatuses() []string {
	return []string{
		Preparing.String(), Queued.String(), Running.String(), Paused.String(), FailedFinishing.String(), Killing.String(), Succeeded.String(), Failed.String(),
		Killed.String(),
	}
}

func (s Status) String() string { return string(s) }

// Success says whether the status is an end that counts as a success for what comes after.
func (s Status) Success() bool { return s == Succeeded || s == Skipped || s == FailedSucceeded }

// Failure says whether the status is an end that counts as a failure for what comes after.
func (s Status) Failure() bool { return s == Failed || s == Killed || s == Cancelled }

// Ended says whether the status is an end.
func (s Status) Ended() bool { return s.Success() || s.Failure() }

// fresh says whether a node has not started and is not ended.
func (s Status) fresh() bool { return s == Ready || s == Disabled }

// active says whether a node has started and is not ended.
func (s Status) active() bool { return s == Queued || s == Running || s == Killing }

// Outcome is how a node's job ended, after its last attempt.
type Outcome string

// The outcomes.
const (
	JobSucceeded Outcome = "succeeded"
	JobFailed    Outcome = "failed"
	JobKilled    Outcome = "killed"    // it had started
	JobCancelled Outcome = "cancelled" // it had not
)

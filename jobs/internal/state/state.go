package state

import "github.com/riverqueue/river/rivertype"

// Outcome is how a run ended, in the words of the database's type.
type Outcome string

// Outcomes of runs. Completed, Cancelled and Discarded end the job.
const (
	Completed Outcome = "completed"
	Errored   Outcome = "errored"
	Cancelled Outcome = "cancelled"
	Discarded Outcome = "discarded"
	Lost      Outcome = "lost"
	Snoozed   Outcome = "snoozed"
	Returned  Outcome = "returned"
	Parked    Outcome = "parked"
	Moved     Outcome = "moved"
	Retried   Outcome = "retried"
)

// Outcomes lists every outcome.
func Outcomes() []Outcome {
	return []Outcome{Completed, Errored, Cancelled, Discarded, Lost, Snoozed, Returned, Parked, Moved, Retried}
}

// Final tells whether no further run follows.
func (o Outcome) Final() bool {
	return o == Completed || o == Cancelled || o == Discarded
}

// State is the state of a job that ended with a final outcome.
func (o Outcome) State() rivertype.JobState {
	return rivertype.JobState(o)
}

// Bit is the bit of a state in unique_states, as in River's own mask.
func Bit(s rivertype.JobState) byte {
	for i, known := range rivertype.JobStates() {
		if known == s {
			return 1 << i
		}
	}
	return 0
}

// Bits is the mask of several states.
func Bits(states []rivertype.JobState) byte {
	var mask byte
	for _, s := range states {
		mask |= Bit(s)
	}
	return mask
}

// FromBits lists the states of a mask.
func FromBits(mask byte) []rivertype.JobState {
	var states []rivertype.JobState
	for i, s := range rivertype.JobStates() {
		if mask&(1<<i) != 0 {
			states = append(states, s)
		}
	}
	return states
}

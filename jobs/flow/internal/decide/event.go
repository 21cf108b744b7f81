package decide

// Event is something that happened, or that a person wants.
type Event interface {
	// apply returns why the event is not possible; "" if it is, or if it is an old one that says nothing any more.
	apply(m *Machine) (refused string)
}

// Events of the run and its jobs. Those that come twice, or too late, have no effect.
type (
	// Begin lets a run that is PREPARING or QUEUED start its first nodes.
	Begin struct{}

	// Ended says that a node's job came to its end, after its last attempt.
	Ended struct {
		Node    int
		Try     int // of the node when its job was made
		Outcome Outcome
		Attempt int // index of the last attempt
		Outputs map[string]string
		Reason  string // for people, of a failure
	}

	// CouldNotStart says that a node that was to start has no job: its parameters did not resolve, say.
	CouldNotStart struct {
		Node   int
		Reason string
	}

	// RetryDue says that an embedded flow has waited for its next attempt.
	RetryDue Retry

	// TimedOut says that an attempt of an embedded flow has lasted too long: what runs in it is ended, what has not started does not start, and
	// the attempt has failed.
	TimedOut struct {
		Node    int
		Try     int // of the node then
		Attempt int
		Reason  string // for people
	}

	// Hold keeps a node that has not started from starting, until it is released.
	Hold struct {
		Node int
		By   string // for people: "run 12 (pipeline)"
	}

	// Release lets a node start that was held.
	Release struct{ Node int }
)

// What a person may want.
type (
	// Pause lets what runs go on, with its jobs' retries, and nothing start.
	Pause struct{}
	// Resume ends a pause.
	Resume struct{}
	// Kill ends what runs and starts nothing more. Of one that is being killed already the reason stays.
	Kill struct{ Reason string } // for people: "the run was killed by ann"
	// RetryFailed starts over what failed, was killed or cancelled; what succeeded stays.
	RetryFailed struct{}
	// RetryFlow starts over a whole embedded flow, or an instance of a for_each, with what succeeded in it, everything that depends on it, and what RetryFailed does.
	RetryFlow struct{ Node int }
	// Rerun starts over nodes, everything that depends on them, and what RetryFailed does.
	Rerun struct{ Nodes []int }
	// MarkSucceeded makes a node that does not run one that succeeded. Nodes that were cancelled are decided on again.
	MarkSucceeded struct {
		Node    int
		By      string // for people; "": somebody
		Outputs map[string]string
	}
)

// Apply takes events in, one after the other, and then decides what follows from all of them. Without an event it decides what follows
// from the rows, which is nothing if they are as an Apply left them that did not say that there is more.
func (m *Machine) Apply(events ...Event) Effects {
	m.effects.FirstFailure = None
	for i, event := range events {
		if reason := event.apply(m); reason != "" {
			m.effects.Refused = append(m.effects.Refused, Refusal{Event: i, Reason: reason})
		}
	}
	m.settle()
	status := m.status()
	m.effects.Ended = status.Ended() && (status != m.run || m.reopened)
	m.reopened = false
	if status != m.run {
		m.run, m.effects.Status = status, status
	}
	return m.takeEffects()
}

package state

import "time"

// Loss is what follows a run whose executor died.
type Loss struct {
	Outcome Outcome       // Lost or Discarded
	Reason  string        // of a dead letter: poison or exhausted; empty if Lost
	Delay   time.Duration // until the further run; 0: at once
}

// AfterLoss decides what follows a lost run: past are the outcomes of the runs before it, newest first, attempt its own number.
// The first loss in a row is made good at once, further ones wait by the default retry policy; limit losses in a row are poison.
func AfterLoss(past []Outcome, attempt, maxAttempts int16, limit int) Loss {
	losses := 1 + lossesInARow(past)
	switch {
	case losses >= limit:
		return Loss{Outcome: Discarded, Reason: "poison"}
	case attempt >= maxAttempts:
		return Loss{Outcome: Discarded, Reason: "exhausted"}
	case losses == 1:
		return Loss{Outcome: Lost}
	default:
		return Loss{Outcome: Lost, Delay: DefaultRetry(attempt)}
	}
}

// lossesInARow counts losses since the last run that came to an end of its own. A run that never started says nothing.
func lossesInARow(past []Outcome) int {
	n := 0
	for _, outcome := range past {
		switch outcome {
		case Lost:
			n++
		case Returned, Parked, Moved:
		default:
			return n
		}
	}
	return n
}

// maxRetry bounds the default retry policy.
const maxRetry = 365 * 24 * time.Hour

// DefaultRetry is the delay of River's default policy after the given attempt: attempt^4 seconds, without its jitter, at most a
// year.
func DefaultRetry(attempt int16) time.Duration {
	n := int64(max(1, attempt))
	if n > 80 {
		return maxRetry
	}
	return min(maxRetry, time.Duration(n*n*n*n)*time.Second)
}

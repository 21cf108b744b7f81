package periodic

import (
	"encoding/json"
	"time"

	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/periodic/internal/tick"
)

// Schedule says what is to be started, and when. Exactly one of Cron, Every, Delay and At, and exactly one of Job and Flow must be set. Zero values mean
// the defaults.
type Schedule struct {
	// Name is unique in the database schema: 1 to 200 characters, without spaces at the ends or control characters.
	Name string `json:"name"`

	// Description is for people. At most 1,000 characters.
	Description string `json:"description,omitempty"`

	// Cron is an expression of wall times: cron with 5 fields, or 6 with seconds first, a descriptor (@daily), or Quartz with 6 or 7 fields.
	Cron string `json:"cron,omitempty"`

	// Every is a fixed rate in whole seconds: ticks are Phase plus multiples of it, whatever is restarted when. Daylight saving time means nothing to it.
	Every Duration `json:"every,omitempty"`

	// Phase is a time of a tick of Every. Defaults to when the schedule was first stored, cut to the second.
	Phase *time.Time `json:"phase,omitempty"`

	// Delay is the time from the end of the last run to the start of the next; the first starts at once, or at StartAt.
	Delay Duration `json:"delay,omitempty"`

	// At is the one time to run at.
	At *time.Time `json:"at,omitempty"`

	// TimeZone of Cron is an IANA name. Defaults to UTC.
	TimeZone string `json:"time_zone,omitempty"`

	// StartAt and EndAt bound the ticks, both included. nil: no bound.
	StartAt *time.Time `json:"start_at,omitempty"`
	EndAt   *time.Time `json:"end_at,omitempty"`

	// DSTGap is what becomes of a tick whose wall time is left out when clocks go forward. Defaults to GapNext.
	DSTGap Gap `json:"dst_gap,omitzero"`

	// DSTOverlap says when a tick runs whose wall time is shown twice when clocks go back. Defaults to OverlapFirst.
	DSTOverlap DSTOverlap `json:"dst_overlap,omitzero"`

	// Missed is what becomes of ticks that nobody fired in time. Defaults to MissedLatest.
	Missed Missed `json:"missed,omitzero"`

	// AfterPause is what becomes of the ticks of a pause when it ends. Defaults to MissedSkip.
	AfterPause Missed `json:"after_pause,omitzero"`

	// Grace is how late a tick may be fired and still be on time. When the first due tick is later, all that are due then are Missed's. Defaults to a minute.
	Grace Duration `json:"grace,omitempty"`

	// Overlap says what a tick does while the run of an earlier one has not ended. Defaults to OverlapAllow.
	Overlap Overlap `json:"overlap,omitempty"`

	// Spread moves all ticks of the schedule later by the same time below Spread, which its id decides, so that schedules with the same expression do
	// not start together. At most 24 hours.
	Spread Duration `json:"spread,omitempty"`

	// Jitter moves each tick later by a time below Jitter, which the tick decides. At most 24 hours.
	Jitter Duration `json:"jitter,omitempty"`

	Job  *JobTarget  `json:"job,omitempty"`
	Flow *FlowTarget `json:"flow,omitempty"`
}

// Project is the project that the schedule belongs to, that of its flow; "": none, it enqueues a job.
func (s *Schedule) Project() string {
	if s.Flow == nil {
		return ""
	}
	return s.Flow.Project
}

// JobTarget is a job to enqueue. Its metadata hold the schedule's name and the tick's time: see TickOf.
type JobTarget struct {
	Kind        string          `json:"kind"`
	Args        json.RawMessage `json:"args,omitempty"`         // a JSON object; defaults to {}
	Queue       string          `json:"queue,omitempty"`        // defaults to "default"
	Priority    int             `json:"priority,omitempty"`     // 1 (first) to 4; defaults to 1
	MaxAttempts int             `json:"max_attempts,omitempty"` // defaults to 25
	Tags        []string        `json:"tags,omitempty"`
	Metadata    json.RawMessage `json:"metadata,omitempty"` // a JSON object
}

// FlowTarget is a flow to run. Its runs have the parameters schedule.name and schedule.time (RFC 3339, in the schedule's zone).
type FlowTarget struct {
	Project string       `json:"project"`
	Flow    string       `json:"flow"`
	Version int          `json:"version,omitempty"` // 0: the newest at each tick
	Options flow.Options `json:"options,omitzero"`
}

// Rules with text forms, which JSON and the command line use.
type (
	// Gap is what becomes of a tick whose wall time is left out: next, skip.
	Gap = tick.Gap

	// DSTOverlap says when a tick runs whose wall time is shown twice: first, last, both.
	DSTOverlap = tick.Overlap

	// Missed says which ticks fire that nobody fired in time: skip, latest, all:N, all:N:AGE.
	Missed = tick.Missed
)

// The rules for daylight saving time.
const (
	GapNext      = tick.GapNext      // a tick that is left out runs at the first moment after the gap
	GapSkip      = tick.GapSkip      // it is skipped
	OverlapFirst = tick.OverlapFirst // a tick whose time is shown twice runs on the first pass
	OverlapLast  = tick.OverlapLast  // on the last
	OverlapBoth  = tick.OverlapBoth  // on both
)

// The rules for missed ticks that have no parameters.
var (
	MissedSkip   = tick.MissedSkip   // none fires that is late
	MissedLatest = tick.MissedLatest // the last one does
)

// MissedAll is the rule for missed ticks by which the last n fire, and of these none older than an age; 0 is no limit of age.
func MissedAll(n int, age time.Duration) Missed { return tick.MissedAll(n, age) }

// Overlap says what a tick does while the run of an earlier one has not ended.
type Overlap string

// The rules for overlaps.
const (
	OverlapAllow  Overlap = "allow"  // both run
	OverlapSkip   Overlap = "skip"   // the tick is skipped
	OverlapQueue  Overlap = "queue"  // the tick waits for the end; while one waits, further ones are skipped
	OverlapCancel Overlap = "cancel" // the run is cancelled, and the tick waits for its end; a newer tick takes the place of one that waits
)

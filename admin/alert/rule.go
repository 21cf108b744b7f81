package alert

import (
	"maps"
	"slices"
	"time"
)

// Types of rules.
const (
	FailureRate  = "failure_rate"  // too many of the runs of a queue or kind fail
	OldestAge    = "oldest_age"    // a queue's oldest ready job has waited for too long
	SLAMissed    = "sla_missed"    // a run of a flow, or a node of it, missed its SLA
	DeadLetters  = "dead_letters"  // there are new dead letters, or too many
	MissedTicks  = "missed_ticks"  // ticks of a schedule did not run, or are late
	DeadExecutor = "dead_executor" // a process that worked jobs died
	Partitions   = "partitions"    // partitions are not made far enough ahead
	Duties       = "duties"        // the scheduler's duties are late, or fail
	LostJobs     = "lost_jobs"     // jobs are in no place: a fault of Pelton's
)

// Severities of rules; they mean what those who are told take them for.
const (
	Info     = "info"
	Warning  = "warning"
	Critical = "critical"
)

// Rule says what is bad, and who is told. Which fields a rule of a type has is in docs/alerts.md.
type Rule struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Severity string `json:"severity"`

	// What is looked at; empty: all.
	Queues    []string `json:"queues,omitempty"`
	Kinds     []string `json:"kinds,omitempty"`
	Projects  []string `json:"projects,omitempty"`
	Flows     []string `json:"flows,omitempty"`
	Schedules []string `json:"schedules,omitempty"`

	By       string   `json:"by,omitempty"`        // failure_rate: queue or kind
	Window   Duration `json:"window,omitzero"`     // how far back it looks
	MinRuns  int      `json:"min_runs,omitempty"`  // failure_rate: fewer tell nothing
	Over     float64  `json:"over,omitempty"`      // failure_rate: the share of runs, 0 to 1, beyond which it is bad
	Until    float64  `json:"until,omitempty"`     // and down to which it has to fall
	OverAge  Duration `json:"over_age,omitzero"`   // oldest_age, the same
	UntilAge Duration `json:"until_age,omitzero"`  //
	MoreThan int      `json:"more_than,omitempty"` // dead_letters: so many in all; 0: new ones
	Late     Duration `json:"late,omitzero"`       // missed_ticks: a tick that is so late counts as missed
	Days     int      `json:"days,omitempty"`      // partitions: at least so many days ahead

	// For is how long it must be bad before anybody is told, RecoverAfter how long it must not be bad to count as recovered.
	For          Duration `json:"for,omitzero"`
	RecoverAfter Duration `json:"recover_after,omitzero"`

	// Remind is the time between two notices of what goes on firing; 0: one is enough.
	Remind Duration `json:"remind,omitzero"`

	// Group is the least time between two notices of the rule, so that what happens in between comes in one.
	Group Duration `json:"group,omitzero"`

	// Channels are who is told.
	Channels []string `json:"channels"`
}

// trait says what rules of a type are like.
type trait struct {
	fields   []string // beside those of all
	defaults Rule
	what     string // what a subject is
}

const minute = Duration(time.Minute)

// traits of the types of rules.
var traits = map[string]trait{
	FailureRate: {
		[]string{"queues", "kinds", "by", "window", "min_runs", "over", "until"},
		Rule{By: "queue", Window: 5 * minute, MinRuns: 20, Over: 0.2, RecoverAfter: 5 * minute},
		"queue",
	},
	OldestAge: {
		[]string{"queues", "over", "until"},
		Rule{OverAge: 15 * minute, For: minute, RecoverAfter: 2 * minute},
		"queue",
	},
	SLAMissed:    {[]string{"projects", "flows", "window"}, Rule{Window: 60 * minute}, "flow"},
	DeadLetters:  {[]string{"queues", "kinds", "window", "more_than"}, Rule{Window: 15 * minute}, "queue"},
	MissedTicks:  {[]string{"schedules", "window", "late"}, Rule{Window: 60 * minute, Late: 5 * minute}, "schedule"},
	DeadExecutor: {[]string{"queues", "window"}, Rule{Window: 15 * minute}, "executor"},
	Partitions:   {[]string{"days"}, Rule{Days: 7, For: 5 * minute, RecoverAfter: 5 * minute, Severity: Critical}, "table"},
	Duties:       {nil, Rule{RecoverAfter: minute, Severity: Critical}, "duty"},
	LostJobs:     {nil, Rule{RecoverAfter: 5 * minute, Severity: Critical}, ""},
}

// everyRule are the fields of rules of every type.
var everyRule = []string{"type", "severity", "for", "recover_after", "remind", "group", "channels"}

// Types lists the types of rules.
func Types() []string { return slices.Sorted(maps.Keys(traits)) }

// severities are all of them.
func severities() []string { return []string{Info, Warning, Critical} }

// newRule is a rule of a type with all its defaults.
func newRule(name, typ string) Rule {
	r := traits[typ].defaults
	r.Name, r.Type = name, typ
	if r.Severity == "" {
		r.Severity = Warning
	}
	r.Remind, r.Group = defaultRemind, defaultGroup
	return r
}

const (
	defaultRemind = Duration(4 * time.Hour)
	defaultGroup  = minute
)

// builtIn are the rules that hold where no file gives others: one of each type, for everything.
func builtIn() []Rule {
	var rules []Rule
	for _, typ := range Types() {
		rules = append(rules, newRule(typ, typ))
	}
	return rules
}

// Subject is how people call a subject of the rule.
func (r *Rule) Subject(subject string) string {
	what := traits[r.Type].what
	if r.Type == FailureRate && r.By == "kind" {
		what = "kind"
	}
	if subject == everything || what == "" {
		return "all"
	}
	return what + " " + subject
}

// everything is the subject of a rule that knows no parts.
const everything = "all"

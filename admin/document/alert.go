package document

import (
	"time"

	"github.com/peltonq/pelton/admin/alert"
)

// AlertRules are the rules in force, and who looks after them.
type AlertRules struct {
	Name        string            `json:"name" doc:"what notices call this installation"`
	Source      string            `json:"source" doc:"the file of the rules; empty: those that are built in"`
	PublishedAt *time.Time        `json:"published_at"`
	PublishedBy string            `json:"published_by"`
	EvaluatedAt *time.Time        `json:"evaluated_at"`
	EvaluatedBy string            `json:"evaluated_by"`
	Late        bool              `json:"late" doc:"nobody has evaluated the rules for minutes"`
	Channels    map[string]string `json:"channels" doc:"their types by name"`
	Rules       []alert.Watch     `json:"rules"`
}

// NewAlertRules shows the rules of a status.
func NewAlertRules(s alert.Status) AlertRules {
	channels := s.Channels
	if channels == nil {
		channels = map[string]string{}
	}
	rules := make([]alert.Watch, len(s.Rules))
	for i, r := range s.Rules {
		r.Channels = Texts(r.Channels)
		rules[i] = r
	}
	return AlertRules{s.Name, s.Source, s.PublishedAt, s.PublishedBy, s.EvaluatedAt, s.EvaluatedBy, s.Late, channels, rules}
}

// AlertTested is a notice that was enqueued to see whether a channel works.
type AlertTested struct {
	JobID   int64  `json:"job_id"`
	Channel string `json:"channel"`
	State   string `json:"state" doc:"of the job: completed when the notice is sent"`
}

// Unmuted is a mute that has ended.
type Unmuted struct {
	Rule    string `json:"rule"`
	Subject string `json:"subject"`
	Muted   bool   `json:"muted" doc:"false"`
}

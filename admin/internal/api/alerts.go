package api

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/alert"
	"github.com/peltonq/pelton/admin/document"
)

func (s *server) addAlerts() {
	op := func(id, method, path, summary, detail string, role access.Role) operation {
		o := operation{id: id, method: method, path: path, tag: "alerts", summary: summary, detail: detail, role: role}
		if method == http.MethodPost {
			o.errors = []int{http.StatusNotFound} // of the rule, mute or channel that the body names
		}
		return o
	}
	add(s, op("alerts-list", http.MethodGet, "/alerts", "List what is bad by rule and subject: since when, and who was told", "", access.Viewer), s.alertsList)
	add(s, op("alerts-rules", http.MethodGet, "/alerts/rules", "Show the rules in force, and who evaluated them when", "", access.Viewer), s.alertsRules)
	add(s, op("alerts-mutes", http.MethodGet, "/alerts/mutes", "List what is muted", "", access.Viewer), s.alertsMutes)
	add(s, op("alerts-mute", http.MethodPost, "/alerts/mutes", "Send no notices of a rule, of a subject, or of both, until a time",
		"One that is there is changed. What is muted is still listed; the end of what was told before is told.", access.Operator), s.alertsMute)
	add(s, op("alerts-unmute", http.MethodPost, "/alerts/mutes/end", "End a mute", "Of just this rule and subject.", access.Operator), s.alertsUnmute)
	test := op("alerts-test", http.MethodPost, "/alerts/test", "Send a notice to a channel, the way all notices go",
		"It is a job: ask for it until it is completed.", access.Operator)
	test.errors = []int{http.StatusNotFound}
	add(s, test, s.alertsTest)
}

func (s *server) alertsList(ctx context.Context, in *struct{ Paging }) (*answer[Page[alert.Alert]], error) {
	status, err := s.Alerts.Status(ctx)
	if err != nil {
		return nil, err
	}
	key := func(a alert.Alert) string { return a.Rule + "\x00" + a.Subject }
	for i := range status.Alerts {
		status.Alerts[i].Channels = document.Texts(status.Alerts[i].Channels)
	}
	slices.SortFunc(status.Alerts, func(a, b alert.Alert) int { return cmp.Compare(key(a), key(b)) })
	return answered(pageFrom("alerts", status.Alerts, in.Paging, key))
}

func (s *server) alertsRules(ctx context.Context, _ *struct{}) (*answer[document.AlertRules], error) {
	status, err := s.Alerts.Status(ctx)
	return answered(document.NewAlertRules(status), err)
}

// mutePlace is where a page of mutes ends.
type mutePlace struct {
	Rule    string `json:"r"`
	Subject string `json:"s"`
}

func (s *server) alertsMutes(ctx context.Context, in *struct{ Paging }) (*answer[Page[alert.Mute]], error) {
	const list = "mutes"
	after, err := positionOf[mutePlace](list, in.Cursor)
	if err != nil {
		return nil, err
	}
	p := alert.MuteListParams{Limit: in.Limit + 1}
	if after != nil {
		p.After = &alert.Mute{Rule: after.Rule, Subject: after.Subject}
	}
	mutes, err := s.Alerts.Mutes(ctx, p)
	if err != nil {
		return nil, err
	}
	return &answer[Page[alert.Mute]]{pageOf(list, mutes, in.Limit, func(m alert.Mute) any { return mutePlace{m.Rule, m.Subject} })}, nil
}

// MuteSpec is what is to be muted, and for how long.
type MuteSpec struct {
	Rule    string     `json:"rule" maxLength:"200" doc:"* is any"`
	Subject string     `json:"subject,omitempty" maxLength:"500" default:"*" doc:"a queue, a schedule, ... as alerts call it; * is any"`
	For     string     `json:"for,omitempty" maxLength:"50" doc:"how long, as 2h or 7d"`
	Until   *time.Time `json:"until,omitempty" doc:"until when, instead of for"`
	Reason  string     `json:"reason,omitempty" maxLength:"500" doc:"for others to read"`
}

func (s *server) alertsMute(ctx context.Context, in *struct{ Body MuteSpec }) (*answer[alert.Mute], error) {
	b := in.Body
	m := alert.Mute{Rule: b.Rule, Subject: b.Subject, Reason: b.Reason}
	switch {
	case (b.For == "") == (b.Until == nil):
		return nil, invalid("body", "want for or until, and not both")
	case b.Until != nil:
		m.Until = *b.Until
	default:
		d, err := alert.ParseDuration(b.For)
		if err != nil {
			return nil, invalid("body.for", "%v", err)
		}
		m.Until = time.Now().Add(time.Duration(d))
	}
	return answered(s.Alerts.Mute(ctx, by(ctx), m))
}

// MuteName names a mute.
type MuteName struct {
	Rule    string `json:"rule" maxLength:"200"`
	Subject string `json:"subject,omitempty" maxLength:"500" default:"*"`
}

func (s *server) alertsUnmute(ctx context.Context, in *struct{ Body MuteName }) (*answer[document.Unmuted], error) {
	err := s.Alerts.Unmute(ctx, by(ctx), in.Body.Rule, in.Body.Subject)
	return answered(document.Unmuted{Rule: in.Body.Rule, Subject: in.Body.Subject}, err)
}

// ChannelName names a channel.
type ChannelName struct {
	Channel string `json:"channel" maxLength:"200"`
}

func (s *server) alertsTest(ctx context.Context, in *struct{ Body ChannelName }) (*answer[document.AlertTested], error) {
	id, err := s.Alerts.Test(ctx, by(ctx), s.Jobs, in.Body.Channel)
	return answered(document.AlertTested{JobID: id, Channel: in.Body.Channel, State: string(rivertype.JobStateAvailable)}, err)
}

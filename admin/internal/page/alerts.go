package page

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/peltonq/pelton/admin/alert"
)

var alertsRoom = room{Name: "Alerts", Path: "/alerts", Mount: func(p *Page) {
	p.get("/alerts", viewer, p.showAlerts)
	p.post("/alerts/mute", operator, p.muteAlert)
	p.post("/alerts/unmute", operator, p.unmuteAlert)
	p.post("/alerts/test", operator, p.testChannel)
	fires := func(mutable bool) opener {
		return func(*http.Request) (part, error) {
			return part{Page: "alerts", Name: "fires", Load: func(ctx context.Context) (any, error) { return p.firing(ctx, mutable) }}, nil
		}
	}
	p.live("/live/alerts", viewer, fires(false))
	p.live("/live/alerts/mutable", operator, fires(true))
}}

// muteTimes are the lengths of mutes that the form offers.
var muteTimes = []string{"30m", "2h", "8h", "1d", "7d", "30d"}

// firingPart is what is bad now.
type firingPart struct {
	Alerts  []alertLine
	Late    bool
	Last    *time.Time // evaluation
	Mutable bool       // there are ways to the form
}

// alertLine is something that is bad, and the mute that is on it.
type alertLine struct {
	alert.Alert

	Mute *alert.Mute // that ends last; nil: none
}

func newFiringPart(s alert.Status, mutable bool) firingPart {
	shown := firingPart{Late: s.Late, Last: s.EvaluatedAt, Mutable: mutable}
	if !s.Late {
		shown.Last = nil // it would change with each evaluation
	}
	for _, a := range s.Alerts {
		line := alertLine{Alert: a}
		for i, m := range s.Mutes {
			if a.MutedUntil != nil && m.Until.Equal(*a.MutedUntil) && (m.Rule == alert.Any || m.Rule == a.Rule) && (m.Subject == alert.Any || m.Subject == a.Subject) {
				line.Mute = &s.Mutes[i]
			}
		}
		shown.Alerts = append(shown.Alerts, line)
	}
	return shown
}

func (p *Page) alerts(ctx context.Context) (alert.Status, error) {
	ctx, cancel := p.limit(ctx)
	defer cancel()
	return p.config.Alerts.Status(ctx)
}

func (p *Page) firing(ctx context.Context, mutable bool) (firingPart, error) {
	status, err := p.alerts(ctx)
	return newFiringPart(status, mutable), err
}

type alertsPage struct {
	alert.Status

	Fires         firingPart
	Watches       []watchLine
	Times         []string
	Rule, Subject string // that the form begins with
}

// watchLine is a rule and what it says.
type watchLine struct {
	alert.Watch

	Says []string
}

func (p *Page) showAlerts(w http.ResponseWriter, r *http.Request) error {
	status, err := p.alerts(r.Context())
	if err != nil {
		return err
	}
	shown := alertsPage{
		Status: status, Fires: newFiringPart(status, operator(r.Context()) == nil), Times: muteTimes,
		Rule: r.URL.Query().Get("rule"), Subject: r.URL.Query().Get("subject"),
	}
	for _, one := range status.Rules {
		shown.Watches = append(shown.Watches, watchLine{one, ruleSays(one.Rule)})
	}
	return p.render(w, r, "alerts", "Alerts", shown)
}

// plainWord is a text that YAML takes for itself without quotes, unless it is null.
var plainWord = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_./-]*$`)

// ruleSays are the settings of a rule, as its file has them.
func ruleSays(r alert.Rule) (says []string) {
	say := func(set bool, format string, args ...any) {
		if set {
			says = append(says, fmt.Sprintf(format, args...))
		}
	}
	list := func(name string, words []string) {
		quoted := make([]string, len(words))
		for i, word := range words {
			if quoted[i] = word; !plainWord.MatchString(word) || strings.EqualFold(word, "null") {
				quoted[i] = strconv.Quote(word)
			}
		}
		say(len(words) > 0, "%s: [%s]", name, strings.Join(quoted, ", "))
	}
	age := func(name string, d alert.Duration) { say(d > 0, "%s: %s", name, d) }
	list("queues", r.Queues)
	list("kinds", r.Kinds)
	list("projects", r.Projects)
	list("flows", r.Flows)
	list("schedules", r.Schedules)
	say(r.By != "", "by: %s", r.By)
	age("window", r.Window)
	say(r.MinRuns > 0, "min_runs: %d", r.MinRuns)
	say(r.Over > 0, "over: %.4g%%", r.Over*100)
	say(r.Until > 0, "until: %.4g%%", r.Until*100)
	age("over", r.OverAge)
	age("until", r.UntilAge)
	say(r.MoreThan > 0, "more_than: %d", r.MoreThan)
	age("late", r.Late)
	say(r.Days > 0, "days: %d", r.Days)
	age("for", r.For)
	age("recover_after", r.RecoverAfter)
	age("remind", r.Remind)
	age("group", r.Group)
	return says
}

func (p *Page) muteAlert(w http.ResponseWriter, r *http.Request) error {
	length := r.PostFormValue("for")
	if !slices.Contains(muteTimes, length) {
		return badInput("%q is no time that the form offers", length)
	}
	d, err := alert.ParseDuration(length)
	if err != nil {
		return badInput("%v", err)
	}
	m := alert.Mute{Rule: r.PostFormValue("rule"), Subject: r.PostFormValue("subject"), Reason: r.PostFormValue("reason"), Until: time.Now().Add(time.Duration(d))}
	if m.Rule == "" {
		return badInput("choose a rule, or * for any")
	}
	m, err = p.config.Alerts.Mute(r.Context(), actor(r.Context()).Name, m)
	if err != nil {
		return told(err)
	}
	return p.done(w, r, "/alerts", "%s is muted until %s UTC.", mutedText(m.Rule, m.Subject), m.Until.Format("2006-01-02 15:04"))
}

func (p *Page) unmuteAlert(w http.ResponseWriter, r *http.Request) error {
	rule, subject := r.PostFormValue("rule"), r.PostFormValue("subject")
	if rule == "" || subject == "" {
		return badInput("which mute?")
	}
	if err := p.config.Alerts.Unmute(r.Context(), actor(r.Context()).Name, rule, subject); err != nil {
		return told(err)
	}
	return p.done(w, r, "/alerts", "%s is muted no more.", mutedText(rule, subject))
}

func mutedText(rule, subject string) string {
	text := "Rule " + rule
	if rule == alert.Any {
		text = "Every rule"
	}
	if subject != alert.Any {
		text += ", subject " + subject + ","
	}
	return text
}

func (p *Page) testChannel(w http.ResponseWriter, r *http.Request) error {
	job, err := p.config.Alerts.Test(r.Context(), actor(r.Context()).Name, p.config.Jobs, r.PostFormValue("channel"))
	if err != nil {
		return told(err)
	}
	return p.done(w, r, fmt.Sprintf("/jobs/%d", job), "This job sends the notice. When it is completed, the channel works.")
}

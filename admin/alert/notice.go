package alert

import (
	"fmt"
	"strings"
	"time"
)

// Kind is the kind of the jobs that send notices.
const Kind = "pelton_alert"

// Events that notices tell.
const (
	Firing    = "firing"    // it is bad, and nobody was told yet
	Reminder  = "reminder"  // it still is
	Recovered = "recovered" // it is no more
	Test      = "test"      // somebody wants to see whether a channel works
)

// maxSubjects is how many subjects a notice names; of the others it says how many they are.
const maxSubjects = 20

// Notice is what one channel is told: the args of a job, and what a webhook gets.
type Notice struct {
	ID       int64     `json:"id,omitempty"` // of the job; set as it is sent. Equal: the same notice once more
	Event    string    `json:"event"`
	Name     string    `json:"name"` // of the installation
	Channel  string    `json:"channel"`
	Rule     string    `json:"rule"`
	Type     string    `json:"type"`
	Severity string    `json:"severity"`
	Summary  string    `json:"summary"` // one line
	Subjects []About   `json:"subjects"`
	More     int       `json:"more,omitempty"` // subjects that are not named
	At       time.Time `json:"at"`             // when it was found
	Late     Duration  `json:"late,omitzero"`  // how much later it is sent, if that is much; set as it is sent
}

// About is one subject of a notice.
type About struct {
	Subject string    `json:"subject"` // as rules and mutes call it
	Title   string    `json:"title"`   // as people call it
	Text    string    `json:"text"`
	Value   float64   `json:"value"`
	Since   time.Time `json:"since"` // when it began to be bad
}

// Kind implements river.JobArgs.
func (Notice) Kind() string { return Kind }

// newNotice makes a notice of a draft, for one channel. A rule that is no longer there has no type.
func newNotice(r *Rule, d draft, channel, title string, now time.Time) Notice {
	n := Notice{
		Event: d.event, Name: title, Channel: channel, Rule: r.Name, Type: r.Type, Severity: r.Severity, At: now.UTC(), Subjects: []About{},
	}
	for _, s := range d.states {
		if len(n.Subjects) == maxSubjects {
			n.More = len(d.states) - maxSubjects
			break
		}
		n.Subjects = append(n.Subjects, About{s.Subject, r.Subject(s.Subject), s.Text, s.Value, s.BadSince.UTC()})
	}
	n.Summary = n.summarize()
	return n
}

func (n Notice) summarize() string {
	var what string
	switch total := len(n.Subjects) + n.More; {
	case total != 1:
		what = fmt.Sprintf("%d at once, %s the first", total, n.Subjects[0].Title)
	case n.Subjects[0].Title == everything:
		what = n.Subjects[0].Text
	default:
		what = n.Subjects[0].Title + ": " + n.Subjects[0].Text
	}
	if n.Event == Recovered {
		return n.Rule + " recovered: " + strings.TrimSuffix(what, ".")
	}
	return n.Rule + ": " + what
}

// subjectLine is a notice in the line that mails have for it.
func (n Notice) subjectLine() string {
	line := fmt.Sprintf("[%s %s] %s", n.Name, n.Event, n.Summary)
	if r := []rune(line); len(r) > 200 {
		line = string(r[:199]) + "…"
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, line)
}

// text is a notice for people.
func (n Notice) text() string {
	var b strings.Builder
	if n.Late > 0 {
		fmt.Fprintf(&b, "This notice is %s late: it tells how things were at %s.\n\n", about(time.Duration(n.Late)), n.At.UTC().Format(time.RFC3339))
	}
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-10s%s\n", name, value)
		}
	}
	line("event", n.Event)
	line("rule", n.Rule)
	line("severity", n.Severity)
	line("where", n.Name)
	line("at", n.At.UTC().Format(time.RFC3339))
	b.WriteString("\n")
	for _, s := range n.Subjects {
		fmt.Fprintf(&b, "%s: %s (since %s)\n", s.Title, s.Text, s.Since.UTC().Format(time.RFC3339))
	}
	if n.More > 0 {
		fmt.Fprintf(&b, "and %d more\n", n.More)
	}
	if n.Event != Test {
		b.WriteString("\npelton alert list\n")
	}
	return b.String()
}

// short is a notice for a chat.
func (n Notice) short() string {
	var b strings.Builder
	fmt.Fprintf(&b, "[%s] %s: %s", n.Name, n.Event, n.Summary)
	if len(n.Subjects) > 1 {
		for _, s := range n.Subjects {
			fmt.Fprintf(&b, "\n• %s: %s", s.Title, s.Text)
		}
		if n.More > 0 {
			fmt.Fprintf(&b, "\nand %d more", n.More)
		}
	}
	if n.Late > 0 {
		fmt.Fprintf(&b, "\n(%s late: how things were at %s)", about(time.Duration(n.Late)), n.At.UTC().Format(time.RFC3339))
	}
	return b.String()
}

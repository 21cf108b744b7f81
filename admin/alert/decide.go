package alert

import (
	"slices"
	"time"
)

// level is how bad a reading is.
type level int

const (
	bad     level = iota + 1
	between       // not bad, and not good enough to count as recovered
)

// reading is what was found about a subject that is not good.
type reading struct {
	subject string
	value   float64
	text    string
	level   level
}

// readings are what was found about all subjects of a rule. Those that are not named are good, unless there were too many to name.
type readings struct {
	list    []reading
	tooMany bool
}

// state is a row of alert_state.
type state struct {
	Subject     string     `json:"subject"`
	BadSince    time.Time  `json:"bad_since"`
	FiringSince *time.Time `json:"firing_since"`
	GoodSince   *time.Time `json:"good_since"`
	NoticedAt   *time.Time `json:"noticed_at"`
	Notices     int        `json:"notices"`
	Value       float64    `json:"value"`
	Text        string     `json:"text"`
	Told        []string   `json:"told"`
}

// draft is a notice that is to be sent to some channels.
type draft struct {
	event    string
	states   []state
	channels []string
}

// outcome is what an evaluation of a rule changes.
type outcome struct {
	put     []state
	drop    []string // subjects
	notices []draft
}

// circumstances are what an evaluation depends on beside the rule and its states.
type circumstances struct {
	now       time.Time
	noticedAt *time.Time                // the last notice of the rule
	muted     func(subject string) bool //
	channels  []string                  // that exist
}

// decide says what becomes of a rule's states. It is a pure function, and deterministic: notices name subjects in order.
func decide(r *Rule, was []state, found readings, c circumstances) outcome {
	d := decision{rule: r, c: c, states: map[string]*state{}}
	for i := range was {
		d.states[was[i].Subject] = &was[i]
	}
	seen := map[string]bool{}
	for _, f := range found.list {
		seen[f.subject] = true
		d.take(f)
	}
	for _, s := range was {
		if !seen[s.Subject] && !found.tooMany {
			d.good(s.Subject)
		}
	}
	d.fire()
	d.recover()
	for _, subject := range sortedKeys(d.states) {
		d.out.put = append(d.out.put, *d.states[subject])
	}
	return d.out
}

type decision struct {
	rule   *Rule
	c      circumstances
	states map[string]*state // that remain
	out    outcome
}

// take takes what was found about one subject.
func (d *decision) take(f reading) {
	s := d.states[f.subject]
	switch {
	case s == nil && f.level != bad:
		return
	case s == nil:
		s = &state{Subject: f.subject, BadSince: d.c.now}
		d.states[f.subject] = s
	case s.FiringSince == nil && f.level != bad:
		d.forget(f.subject)
		return
	}
	s.Value, s.Text, s.GoodSince = f.value, f.text, nil
	if s.FiringSince == nil && d.c.now.Sub(s.BadSince) >= time.Duration(d.rule.For) {
		s.FiringSince = &d.c.now
	}
}

// good notes that a subject is bad no more.
func (d *decision) good(subject string) {
	switch s := d.states[subject]; {
	case s.FiringSince == nil:
		d.forget(subject)
	case s.GoodSince == nil:
		s.GoodSince = &d.c.now
	}
}

func (d *decision) forget(subject string) {
	delete(d.states, subject)
	d.out.drop = append(d.out.drop, subject)
}

// resting tells whether the rule's last notice is so new that the next has to wait.
func (d *decision) resting() bool {
	return d.c.noticedAt != nil && d.c.now.Sub(*d.c.noticedAt) < time.Duration(d.rule.Group)
}

// fire tells of what fires, and was not told of yet, or so long ago that a reminder is due. One that is, brings all along.
func (d *decision) fire() {
	channels := d.existing(d.rule.Channels)
	if len(channels) == 0 || d.resting() {
		return
	}
	var fresh, known []*state
	due := false
	for _, subject := range sortedKeys(d.states) {
		s := d.states[subject]
		switch {
		case s.FiringSince == nil || s.GoodSince != nil || d.c.muted(subject):
		case s.NoticedAt == nil:
			fresh = append(fresh, s)
		default:
			known = append(known, s)
			due = due || d.rule.Remind > 0 && d.c.now.Sub(*s.NoticedAt) >= time.Duration(d.rule.Remind)
		}
	}
	d.tell(Firing, fresh, channels)
	if due {
		d.tell(Reminder, known, channels)
	}
}

func (d *decision) tell(event string, about []*state, channels []string) {
	if len(about) == 0 {
		return
	}
	notice := draft{event: event, channels: channels}
	for _, s := range about {
		s.NoticedAt = &d.c.now
		s.Notices++
		for _, c := range channels {
			if !slices.Contains(s.Told, c) {
				s.Told = append(s.Told, c)
			}
		}
		notice.states = append(notice.states, *s)
	}
	d.out.notices = append(d.out.notices, notice)
}

// recover ends what has been good for long enough, and tells those who were told that it was bad, each of what they know of. A mute does not
// keep that from them: it ends what they were told.
func (d *decision) recover() {
	if d.resting() {
		return
	}
	over := map[string][]state{} // by channel
	for _, subject := range sortedKeys(d.states) {
		s := d.states[subject]
		if s.GoodSince == nil || d.c.now.Sub(*s.GoodSince) < time.Duration(d.rule.RecoverAfter) {
			continue
		}
		for _, c := range d.existing(s.Told) {
			over[c] = append(over[c], *s)
		}
		d.forget(subject)
	}
	for _, c := range sortedKeys(over) {
		d.out.notices = append(d.out.notices, draft{event: Recovered, states: over[c], channels: []string{c}})
	}
}

func (d *decision) existing(channels []string) []string {
	return slices.DeleteFunc(slices.Clone(channels), func(c string) bool { return !slices.Contains(d.c.channels, c) })
}

// removed is what becomes of the states of a rule that is no longer there: they are over.
func removed(was []state, c circumstances) outcome {
	ended := &Rule{}
	d := decision{rule: ended, c: c, states: map[string]*state{}}
	for i := range was {
		was[i].GoodSince = &c.now
		was[i].Text = "the rule is no longer there"
		d.states[was[i].Subject] = &was[i]
	}
	d.recover()
	return d.out
}

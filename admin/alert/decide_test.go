package alert

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// watch evaluates one rule again and again, on a clock of its own.
type watch struct {
	rule    Rule
	now     time.Time
	states  map[string]state
	noticed *time.Time
	muted   map[string]bool
	known   []string // channels
}

func newWatch(rule Rule) *watch {
	if rule.Channels == nil {
		rule.Channels = []string{"ops"}
	}
	return &watch{
		rule: rule, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), states: map[string]state{}, muted: map[string]bool{}, known: []string{"ops", "chat"},
	}
}

// after evaluates some time later, and returns the notices as text. Subjects with a question mark are not good enough to have recovered; one of
// "..." says that there are too many.
func (w *watch) after(d time.Duration, subjects ...string) string {
	w.now = w.now.Add(d)
	var found readings
	for _, s := range subjects {
		level, name := bad, s
		if cut, unsure := strings.CutSuffix(s, "?"); unsure {
			level, name = between, cut
		}
		if found.tooMany = found.tooMany || s == "..."; s != "..." {
			found.list = append(found.list, reading{subject: name, value: 1, text: "t", level: level})
		}
	}
	return w.take(decide(&w.rule, w.was(), found, w.circumstances()))
}

func (w *watch) was() (list []state) {
	for _, name := range sortedKeys(w.states) {
		list = append(list, w.states[name])
	}
	return list
}

func (w *watch) circumstances() circumstances {
	return circumstances{now: w.now, noticedAt: w.noticed, channels: w.known, muted: func(s string) bool { return w.muted[s] }}
}

func (w *watch) take(out outcome) string {
	for _, s := range out.put {
		w.states[s.Subject] = s
	}
	for _, name := range out.drop {
		delete(w.states, name)
	}
	var texts []string
	for _, n := range out.notices {
		now := w.now
		w.noticed = &now
		var names []string
		for _, s := range n.states {
			names = append(names, s.Subject)
		}
		texts = append(texts, fmt.Sprintf("%s %s to %s", n.event, strings.Join(names, ","), strings.Join(n.channels, ",")))
	}
	return strings.Join(texts, "; ")
}

func (w *watch) expect(t *testing.T, want string, d time.Duration, subjects ...string) {
	t.Helper()
	if got := w.after(d, subjects...); got != want {
		t.Errorf("at %s, bad %v: %q, want %q", w.now.Format("15:04:05"), subjects, got, want)
	}
}

const second = time.Second

func TestFiresOnceAndRecovers(t *testing.T) {
	t.Parallel()
	w := newWatch(Rule{})
	w.expect(t, "", 0)
	w.expect(t, "firing a to ops", second, "a")
	for range 100 {
		w.expect(t, "", second, "a")
	}
	w.expect(t, "recovered a to ops", second)
	w.expect(t, "", second)
	w.expect(t, "firing a to ops", second, "a")
}

func TestForKeepsFlappingQuiet(t *testing.T) {
	t.Parallel()
	w := newWatch(Rule{For: minute, RecoverAfter: minute})
	for range 20 { // it is bad for 50 s in a row at most
		for range 6 {
			w.expect(t, "", 10*second, "a")
		}
		w.expect(t, "", 10*second)
	}
	w.expect(t, "", 10*second, "a")
	w.expect(t, "firing a to ops", 60*second, "a")
	for range 20 { // and now good for 50 s at most
		for range 6 {
			w.expect(t, "", 10*second)
		}
		w.expect(t, "", 10*second, "a")
	}
	w.expect(t, "", 10*second)
	w.expect(t, "recovered a to ops", 60*second)
}

// Between the two limits nothing begins, and nothing ends.
func TestHysteresis(t *testing.T) {
	t.Parallel()
	w := newWatch(Rule{For: minute})
	w.expect(t, "", 0, "a?")
	w.expect(t, "", 100*second, "a?")
	w.expect(t, "", second, "a")
	w.expect(t, "", 30*second, "a?") // it begins anew
	w.expect(t, "", second, "a")
	w.expect(t, "", 59*second, "a")
	w.expect(t, "firing a to ops", second, "a")
	w.expect(t, "", 1000*second, "a?")
	w.expect(t, "recovered a to ops", second)
}

func TestReminders(t *testing.T) {
	t.Parallel()
	w := newWatch(Rule{Remind: 10 * minute})
	w.expect(t, "firing a to ops", 0, "a")
	w.expect(t, "firing b to ops", 300*second, "a", "b")
	w.expect(t, "", 299*second, "a", "b")
	w.expect(t, "reminder a,b to ops", second, "a", "b") // one brings the other along
	w.expect(t, "", 599*second, "a", "b")
	w.expect(t, "reminder a,b to ops", second, "a", "b")
	w.rule.Remind = 0
	w.expect(t, "", 10000*second, "a", "b")
}

// What happens shortly after a notice waits, and comes in one.
func TestGrouping(t *testing.T) {
	t.Parallel()
	w := newWatch(Rule{Group: minute})
	w.expect(t, "firing a,b to ops", 0, "a", "b")
	w.expect(t, "", 10*second, "a", "b", "c")
	w.expect(t, "", 10*second, "a", "c", "d", "e") // b waits too
	w.expect(t, "", 10*second, "a", "c", "d")      // nobody was told of e
	w.expect(t, "firing c,d to ops; recovered b to ops", 30*second, "a", "c", "d")
}

func TestMutes(t *testing.T) {
	t.Parallel()
	w := newWatch(Rule{Remind: minute})
	w.muted["a"] = true
	w.expect(t, "firing b to ops", 0, "a", "b")
	w.expect(t, "reminder b to ops", 60*second, "a", "b")
	w.muted["a"] = false
	w.expect(t, "firing a to ops", second, "a", "b") // it still fires, and nobody knows
	w.muted["a"], w.muted["b"] = true, true
	w.expect(t, "", 200*second, "a", "b")
	w.expect(t, "recovered a to ops", second, "b") // this ends what they were told
	w.expect(t, "", second, "a", "b")
	w.expect(t, "recovered b to ops", second) // nobody was told of a since
}

// Who was told that it is bad is told of its end, whoever the channels are by then.
func TestChannelsThatChange(t *testing.T) {
	t.Parallel()
	w := newWatch(Rule{Remind: minute, Channels: []string{"ops", "gone"}})
	w.expect(t, "firing a to ops", 0, "a")
	w.rule.Channels = []string{"chat"}
	w.expect(t, "reminder a to chat", 60*second, "a")
	w.expect(t, "recovered a to chat; recovered a to ops", second)
	w.rule.Channels = []string{"gone"}
	w.expect(t, "", second, "a")
	w.known = nil
	w.expect(t, "", second)
}

func TestTooManyToName(t *testing.T) {
	t.Parallel()
	w := newWatch(Rule{})
	w.expect(t, "firing a,b to ops", 0, "a", "b")
	w.expect(t, "", second, "b", "...") // a may be among those that are not named
	w.expect(t, "recovered a to ops", second, "b")
}

func TestEndOfARule(t *testing.T) {
	t.Parallel()
	w := newWatch(Rule{For: minute})
	w.expect(t, "", 0, "a")
	w.expect(t, "firing a to ops", 60*second, "a", "b")
	if got := w.take(removed(w.was(), w.circumstances())); got != "recovered a to ops" || len(w.states) != 0 {
		t.Errorf("%q, left %v", got, w.states)
	}
}

// Whatever happens, for each channel and subject firing, reminders and recovered take turns, notices of a rule keep their distance, and what is bad for long
// enough is told in the end.
func TestNoticesTakeTurns(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		seconds := func(name string) Duration { return Duration(rapid.IntRange(0, 5).Draw(t, name)) * Duration(second) }
		w := newWatch(Rule{For: seconds("for"), RecoverAfter: seconds("recover"), Remind: seconds("remind"), Group: seconds("group")})
		knows := map[string]bool{}
		evaluate := func(d time.Duration, subjects ...string) {
			before := w.noticed
			text := w.after(d, subjects...)
			if text != "" && before != nil && w.now.Sub(*before) < time.Duration(w.rule.Group) {
				t.Fatalf("%q comes %v after the last notice", text, w.now.Sub(*before))
			}
			for notice := range strings.SplitSeq(text, "; ") {
				words := strings.Fields(notice)
				if len(words) == 0 {
					continue
				}
				for subject := range strings.SplitSeq(words[1], ",") {
					if fresh := words[0] == Firing; fresh == knows[subject] {
						t.Fatalf("%q, and it was told before: %v", notice, knows[subject])
					}
					knows[subject] = words[0] != Recovered
				}
			}
		}
		for range rapid.IntRange(1, 40).Draw(t, "evaluations") {
			var subjects []string
			for _, s := range []string{"a", "b", "c"} {
				if how := rapid.SampledFrom([]string{"", "", "?", "bad", "bad"}).Draw(t, s); how != "" {
					subjects = append(subjects, s+strings.TrimSuffix(how, "bad"))
				}
				w.muted[s] = rapid.Bool().Draw(t, "muted "+s)
			}
			if rapid.IntRange(0, 9).Draw(t, "too many") == 0 {
				subjects = append(subjects, "...")
			}
			evaluate(time.Duration(rapid.IntRange(0, 4).Draw(t, "later"))*second, subjects...)
		}
		w.muted = map[string]bool{}
		for range 4 {
			evaluate(6*second, "a", "b")
		}
		for subject, known := range map[string]bool{"a": true, "b": true, "c": false} {
			if knows[subject] != known {
				t.Fatalf("in the end it is %v that somebody takes %s for bad", knows[subject], subject)
			}
		}
		for range 4 {
			evaluate(6 * second)
		}
		if len(w.states) != 0 || slices.Contains([]bool{knows["a"], knows["b"]}, true) {
			t.Fatalf("when all is good, there is %v, and known is %v", w.states, knows)
		}
	})
}

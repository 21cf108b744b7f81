package plan_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/peltonq/pelton/periodic/internal/expr"
	"github.com/peltonq/pelton/periodic/internal/plan"
	"github.com/peltonq/pelton/periodic/internal/tick"
)

// The scenarios are text: a schedule, and what is decided at one time after another.
func TestScenarios(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/scenarios", func(t *testing.T, path string) {
		t.Helper()
		s := &scenario{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			return s.do(t, d)
		})
	})
}

// scenario is one schedule.
type scenario struct {
	spec  plan.Spec
	loc   *time.Location
	state plan.State
	now   time.Time
	runs  int64
}

func (s *scenario) do(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	switch d.Cmd {
	case "schedule": // at=TIME [cron|every|delay|once]=... and rules
		s.schedule(t, d)
		return s.show(plan.Renew(&s.spec, s.state, s.arg(t, d, "start"), s.now))
	case "decide": // at=TIME [limit=N]
		s.now = s.arg(t, d, "at")
		limit := 1000
		d.MaybeScanArgs(t, "limit", &limit)
		return s.show(plan.Decide(&s.spec, s.state, s.now, limit))
	case "trigger":
		s.now = s.arg(t, d, "at")
		return s.show(plan.Trigger(&s.spec, s.state, s.now, s.now))
	case "resume":
		s.now = s.arg(t, d, "at")
		return s.show(plan.Resume(&s.spec, s.state, s.now))
	case "edit":
		s.now = s.arg(t, d, "at")
		s.change(t, d)
		return s.show(plan.Renew(&s.spec, s.state, s.arg(t, d, "start"), s.now))
	case "ended": // at=TIME: the newest run ended
		s.state.Run.Ended, s.state.Run.EndedAt = true, s.arg(t, d, "at")
		return ""
	case "refused": // the newest start was refused: there is no run
		s.state.Run = plan.Run{}
		return ""
	}
	t.Fatalf("%s: no command %q", d.Pos, d.Cmd)
	return ""
}

func (s *scenario) schedule(t *testing.T, d *datadriven.TestData) {
	t.Helper()
	*s = scenario{spec: plan.Spec{ID: 1, Grace: time.Minute}, loc: time.UTC}
	if d.HasArg("tz") {
		var name string
		d.ScanArgs(t, "tz", &name)
		var err error
		if s.loc, err = time.LoadLocation(name); err != nil {
			t.Fatal(err)
		}
	}
	s.now = s.arg(t, d, "at")
	s.change(t, d)
}

// change reads the expression and the rules.
func (s *scenario) change(t *testing.T, d *datadriven.TestData) {
	t.Helper()
	text := func(key string) string {
		for _, a := range d.CmdArgs {
			if a.Key == key {
				return strings.Join(a.Vals, ",")
			}
		}
		return ""
	}
	duration := func(key string, into *time.Duration) {
		if text(key) == "" {
			return
		}
		var err error
		if *into, err = time.ParseDuration(text(key)); err != nil {
			t.Fatal(err)
		}
	}
	var period time.Duration
	duration("every", &period)
	duration("delay", &s.spec.Delay)
	duration("grace", &s.spec.Grace)
	duration("spread", &s.spec.Spread)
	duration("jitter", &s.spec.Jitter)
	switch {
	case d.HasArg("cron"):
		var rule tick.Rule
		unmarshal(t, text("gap"), &rule.Gap)
		unmarshal(t, text("repeat"), &rule.Overlap)
		e, err := expr.Parse(strings.ReplaceAll(text("cron"), "_", " "), s.now)
		if err != nil {
			t.Fatal(err)
		}
		src := tick.New(e, s.loc, rule, s.now)
		s.spec.Ticks = &src
	case period > 0:
		src := tick.FixedRate(period, s.now)
		s.spec.Ticks = &src
	case d.HasArg("once"):
		src := tick.Once(s.arg(t, d, "once"))
		s.spec.Ticks = &src
	}
	unmarshal(t, text("missed"), &s.spec.Missed)
	unmarshal(t, text("after-pause"), &s.spec.AfterPause)
	if d.HasArg("overlap") {
		s.spec.Overlap = plan.Overlap(text("overlap"))
	}
	if d.HasArg("end") {
		s.spec.End = s.arg(t, d, "end")
	}
}

func unmarshal(t *testing.T, text string, into interface{ UnmarshalText([]byte) error }) {
	t.Helper()
	if text == "" {
		return
	}
	if err := into.UnmarshalText([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

const layout = "2006-01-02T15:04:05.999999"

// arg reads a time in the schedule's zone; zero if it is not given.
func (s *scenario) arg(t *testing.T, d *datadriven.TestData, key string) time.Time {
	t.Helper()
	if !d.HasArg(key) {
		return time.Time{}
	}
	var text string
	d.ScanArgs(t, key, &text)
	at, err := time.ParseInLocation(layout, text, s.loc)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// show prints a decision and goes over to its state. What fires has a run from then on.
func (s *scenario) show(step plan.Step) string {
	var b strings.Builder
	for i, v := range step.Verdicts {
		if n := len(step.Verdicts); n > 12 && i >= 4 && i < n-4 {
			if i == 4 {
				fmt.Fprintf(&b, "... %d more\n", n-8)
			}
			continue
		}
		what := "fire"
		if !v.Fire {
			what = "skip " + string(v.Reason)
		}
		fmt.Fprintf(&b, "%s %s", s.time(v.Tick.At), what)
		if v.Tick.Note != "" {
			fmt.Fprintf(&b, " (%s from %s)", v.Tick.Note, v.Tick.Local.Format("15:04:05"))
		}
		if v.Tick.Merged > 0 {
			b.WriteString(" +" + strconv.Itoa(v.Tick.Merged))
		}
		b.WriteString("\n")
		if v.Fire {
			s.runs++
			step.State.Run = plan.Run{Job: s.runs, Since: s.now}
		}
	}
	s.state = step.State
	if step.Cancel {
		b.WriteString("cancel the run\n")
	}
	for _, at := range []struct {
		name string
		at   time.Time
	}{{"waiting", s.state.Waiting}, {"cut", s.state.Cut}, {"next", s.state.Next}, {"wake", step.Wake}} {
		if !at.at.IsZero() {
			fmt.Fprintf(&b, "%s %s\n", at.name, s.time(at.at))
		}
	}
	if b.Len() == 0 {
		return "nothing\n"
	}
	return b.String()
}

func (s *scenario) time(at time.Time) string { return at.In(s.loc).Format(layout + " MST") }

package periodic

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // for hosts without files of zones; where there are files, Go takes these first
	"unicode"
	"unicode/utf8"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/periodic/internal/expr"
	"github.com/peltonq/pelton/periodic/internal/plan"
	"github.com/peltonq/pelton/periodic/internal/tick"
)

// Limits of schedules.
const (
	maxName        = 200
	maxDescription = 1000
	maxElapsed     = 24 * time.Hour       // of spread and jitter
	maxPeriod      = 366 * 24 * time.Hour // of a rate, a delay and a grace
	defaultGrace   = time.Minute
)

// compiled is a schedule as it is fired.
type compiled struct {
	id        int64
	version   int
	size      int // of its stored spec, in bytes
	name      string
	owner     string
	createdAt time.Time
	code      *coded // nil: all of it is in the row
	schedule  Schedule
	spec      plan.Spec
	zone      *time.Location
}

// coded is what only a process that has a schedule in its code can do. A nil function: as the row says.
type coded struct {
	next   func(time.Time) time.Time        // the first tick after a time
	target func(at time.Time) (*job, error) // what a tick starts; nil: nothing
}

// faults collects what is wrong.
type faults []error

func (f *faults) add(format string, args ...any) { *f = append(*f, fmt.Errorf(format, args...)) }

// each adds the parts of a joined error, with the name of the field before them.
func (f *faults) each(field string, err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			f.each(field, e)
		}
		return
	}
	if err != nil {
		f.add("%s: %w", field, err)
	}
}

// compile checks a schedule and makes of it what decides. createdAt is the phase of a rate that has none. An expression all of whose times lie before
// now is refused; with the zero time for now it is not.
func (s *Schedule) compile(id int64, createdAt, now time.Time, code *coded) (*compiled, error) {
	c := &compiled{id: id, createdAt: createdAt, code: code, schedule: *s, name: s.Name}
	if c.code == nil {
		c.code = &coded{}
	}
	var f faults
	f.each("name", checkName(s.Name))
	if utf8.RuneCountInString(s.Description) > maxDescription || !isText(s.Description) {
		f.add("description: want text of at most %d characters", maxDescription)
	}
	c.zone = s.location(&f)
	c.spec = plan.Spec{
		ID: id, Delay: time.Duration(s.Delay), Overlap: plan.Overlap(s.Overlap),
		Grace:  duration(&f, "grace", s.Grace, maxPeriod),
		Spread: duration(&f, "spread", s.Spread, maxElapsed), Jitter: duration(&f, "jitter", s.Jitter, maxElapsed),
		Missed:     missed(&f, "missed", s.Missed, MissedLatest),
		AfterPause: missed(&f, "after pause", s.AfterPause, MissedSkip),
	}
	if c.spec.Grace == 0 {
		c.spec.Grace = defaultGrace
	}
	switch s.Overlap {
	case "":
		c.spec.Overlap = plan.Allow
	case OverlapAllow, OverlapSkip, OverlapQueue, OverlapCancel:
	default:
		f.add("overlap: %q is not %s, %s, %s or %s", s.Overlap, OverlapAllow, OverlapSkip, OverlapQueue, OverlapCancel)
	}
	if s.EndAt != nil {
		c.spec.End = *s.EndAt
		if s.StartAt != nil && s.EndAt.Before(*s.StartAt) {
			f.add("end: %s is before the start, %s", s.EndAt.Format(time.RFC3339), s.StartAt.Format(time.RFC3339))
		}
	}
	c.times(&f, now)
	c.targets(&f)
	if err := errors.Join(f...); err != nil {
		return nil, err
	}
	return c, nil
}

func checkName(name string) error {
	switch n := utf8.RuneCountInString(name); {
	case n == 0:
		return errors.New("is empty")
	case n > maxName:
		return fmt.Errorf("has %d characters, want at most %d", n, maxName)
	case !isText(name) || strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("%q has characters that are not text", name)
	case name == "." || name == "..":
		return fmt.Errorf("%q means another place in an address, where no browser finds it", name)
	case strings.TrimSpace(name) != name:
		return fmt.Errorf("%q begins or ends with a space", name)
	}
	return nil
}

// isText tells whether Postgres can store a text.
func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

func (s *Schedule) location(f *faults) *time.Location {
	if s.TimeZone == "Local" { // of which host?
		f.add("time zone: Local is another one on every host; want an IANA name such as Europe/Berlin")
		return time.UTC
	}
	if zone, ok := zones.Load(s.TimeZone); ok {
		return zone.(*time.Location) //nolint:errcheck,forcetypeassert // nothing else is in it
	}
	zone, err := time.LoadLocation(s.TimeZone)
	if err != nil {
		f.add("time zone: %q is not known; want an IANA name such as Europe/Berlin", s.TimeZone)
		return time.UTC
	}
	zones.Store(s.TimeZone, zone)
	return zone
}

// zones are those that were loaded, by name. A thousand schedules have few zones, and each takes as long to load as all else of a schedule.
var zones sync.Map

func duration(f *faults, field string, d Duration, most time.Duration) time.Duration {
	if d < 0 || time.Duration(d) > most {
		f.add("%s: %v is out of range, want 0 to %v", field, time.Duration(d), most)
	}
	return time.Duration(d).Truncate(time.Microsecond)
}

func missed(f *faults, field string, rule, byDefault Missed) Missed {
	if rule == (Missed{}) {
		return byDefault
	}
	text, err := rule.MarshalText()
	if err == nil {
		err = rule.UnmarshalText(text) // which looks at the numbers
	}
	f.each(field, err)
	return rule
}

// times makes the source of the ticks.
func (c *compiled) times(f *faults, now time.Time) {
	s := &c.schedule
	var given []string
	for _, field := range []struct {
		name string
		set  bool
	}{{"cron", s.Cron != ""}, {"every", s.Every != 0}, {"delay", s.Delay != 0}, {"at", s.At != nil}, {"next", c.code.next != nil}} {
		if field.set {
			given = append(given, field.name)
		}
	}
	switch len(given) {
	case 0:
		f.add("times: none are given, want one of cron, every, delay and at")
		return
	case 1:
	default:
		f.add("times: %s are given, want one of them", strings.Join(given, " and "))
		return
	}
	anchor := c.createdAt.Truncate(time.Second)
	if s.Phase != nil {
		anchor = *s.Phase
	}
	var source tick.Source
	switch {
	case s.Cron != "":
		if !now.IsZero() {
			now = onTheWall(now.In(c.zone))
		}
		e, err := expr.Parse(s.Cron, now)
		if err != nil {
			f.each("cron", err)
			return
		}
		source = tick.New(e, c.zone, tick.Rule{Gap: s.DSTGap, Overlap: s.DSTOverlap}, anchor)
	case s.Every != 0:
		if p := time.Duration(s.Every); p < time.Second || p > maxPeriod || p%time.Second != 0 {
			f.add("every: %v: want whole seconds, from 1s to %v", p, maxPeriod)
			return
		}
		source = tick.FixedRate(time.Duration(s.Every), anchor)
	case s.Delay != 0:
		if p := time.Duration(s.Delay); p < time.Millisecond || p > maxPeriod {
			f.add("delay: %v is out of range, want 1ms to %v", p, maxPeriod)
		}
		return
	case s.At != nil:
		source = tick.Once(s.At.Truncate(time.Microsecond))
	default:
		source = tick.Func(c.code.next)
	}
	c.spec.Ticks = &source
}

// onTheWall is what the clock on the wall shows at a time, coded as UTC.
func onTheWall(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// targets checks what the ticks start.
func (c *compiled) targets(f *faults) {
	s := &c.schedule
	switch {
	case c.code.target != nil && s.Job == nil && s.Flow == nil:
	case c.code.target == nil && (s.Job == nil) != (s.Flow == nil):
	default:
		f.add("target: want either a job or a flow")
		return
	}
	if s.Flow != nil {
		if s.Flow.Project == "" || s.Flow.Flow == "" {
			f.add("flow: want the names of a project and of a flow")
		}
		if s.Flow.Version < 0 {
			f.add("flow: version is %d, want 1 or more, or 0 for the newest", s.Flow.Version)
		}
		for name := range s.Flow.Options.Params {
			if name == paramName || name == paramTime {
				f.add("flow: parameter %q is given by the schedule itself", name)
			}
		}
	}
	if s.Job != nil {
		if err := jobs.CheckMetadata(s.Job.Metadata); err != nil {
			f.add("job: %v", err)
		}
		if args := strings.TrimSpace(string(s.Job.Args)); args != "" && args[0] != '{' {
			f.add("job: args are not a JSON object")
		}
	}
}

// check is what the queue would refuse, or a flow whatever its project has.
func (c *compiled) check(queue *jobs.Client) error {
	if c.schedule.Flow != nil {
		return flowFaults(c.schedule.Flow.Options.Check())
	}
	if c.schedule.Job == nil {
		return nil
	}
	j, err := c.jobAt(c.createdAt, 0)
	if err != nil {
		return err
	}
	return queue.CheckInsert(j.args, j.opts)
}

// flowFaults puts the name of the field before each thing that is wrong with a flow.
func flowFaults(err error) error {
	if invalid, ok := errors.AsType[*flow.InvalidOptionsError](err); ok {
		err = invalid.Err
	}
	var f faults
	f.each("flow", err)
	return errors.Join(f...)
}

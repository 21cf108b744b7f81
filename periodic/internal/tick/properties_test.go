package tick

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/peltonq/pelton/periodic/internal/expr"
)

// zones have changes of every kind: of an hour, of half an hour, of two, at midnight, across the year's end, of a whole day, of the offset
// without summer time, of seconds, twice within a day or a month.
var zones = []string{
	"UTC", "Asia/Kolkata", "Etc/GMT+12", "Europe/London", "Europe/Berlin", "Europe/Dublin", "Europe/Lisbon", "Europe/Amsterdam", "Europe/Moscow",
	"Europe/Istanbul", "Europe/Volgograd", "Europe/Kyiv", "America/New_York", "America/Los_Angeles", "America/St_Johns", "America/Sao_Paulo",
	"America/Caracas", "America/Havana", "America/Santiago", "America/Asuncion", "America/Nuuk", "America/Juneau", "America/Argentina/San_Luis",
	"America/Scoresbysund", "America/Goose_Bay", "America/Whitehorse", "America/Hermosillo", "Africa/Casablanca", "Africa/Cairo", "Africa/Monrovia", "Africa/Juba",
	"Africa/El_Aaiun", "Antarctica/Troll", "Antarctica/Casey", "Asia/Amman", "Asia/Beirut", "Asia/Gaza", "Asia/Kathmandu", "Asia/Manila",
	"Asia/Pyongyang", "Asia/Singapore", "Asia/Tehran", "Asia/Yangon", "Asia/Dhaka", "Australia/Lord_Howe", "Australia/Sydney", "Pacific/Apia",
	"Pacific/Chatham", "Pacific/Easter", "Pacific/Fakaofo", "Pacific/Kiritimati", "Pacific/Kwajalein", "Pacific/Norfolk", "Pacific/Tongatapu", "Pacific/Guam",
}

// texts draws an expression that names a time every few days at least.
func texts(t *rapid.T) string {
	minute := rapid.SampledFrom([]string{"0", "30", "59", "*/15", "*/7", "0,15,30,45", "20", "5-10", "*"}).Draw(t, "minute")
	hour := rapid.SampledFrom([]string{"*", "0", "1", "2", "3", "23", "*/4", "0-3", "6-22", "22,23,0,1,2", "*", "*"}).Draw(t, "hour")
	switch rapid.IntRange(0, 4).Draw(t, "days") {
	case 0:
		return fmt.Sprintf("%s %s * * SUN,MON,FRI,SAT", minute, hour)
	case 1:
		return fmt.Sprintf("0 %s %s ? * SAT,SUN,THU", minute, hour)
	case 2:
		return fmt.Sprintf("0 %s %s */2 * ?", minute, hour)
	default:
		return fmt.Sprintf("%s %s * * *", minute, hour)
	}
}

// moment draws an instant between 1880 and 2120, most often a few hours from a change of the zone's clock.
func moment(t *rapid.T, z zone) int64 {
	// Numbers drawn from a range are small ones mostly; a hash of one is any.
	at := -2840140800 + int64(mix(rapid.Uint64().Draw(t, "at"))%7573651200)
	if rapid.IntRange(0, 9).Draw(t, "anywhere") == 0 {
		return at
	}
	for s := z.span(at); s.end < at+40*366*day; s = z.span(s.end) {
		if z.offset(s.end) != s.offset {
			return s.end + int64(mix(rapid.Uint64().Draw(t, "from the change"))%(40*3600)) - 20*3600
		}
	}
	return at
}

// step returns how far apart instants may be looked at without missing anything.
func step(z zone, from, until int64) int64 {
	for at := from; at < until; at = z.span(at).end {
		if z.offset(at)%60 != 0 {
			return 1
		}
	}
	return 60
}

func rules(t *rapid.T) Rule {
	return Rule{
		Gap:     rapid.SampledFrom([]Gap{GapNext, GapSkip}).Draw(t, "gap"),
		Overlap: rapid.SampledFrom([]Overlap{OverlapFirst, OverlapLast, OverlapBoth}).Draw(t, "overlap"),
	}
}

// TestTicksAsDumbScan: what a source gives, in any portions and from any instant, is what a scan of the zone's clock finds.
func TestTicksAsDumbScan(t *testing.T) {
	t.Parallel()
	changes := map[Note]int{}
	rapid.Check(t, func(t *rapid.T) {
		z := zone{location(t, rapid.SampledFrom(zones).Draw(t, "zone"))}
		middle := moment(t, z)
		middle -= middle % 60
		from, until := middle-reach-20*3600, middle+reach+20*3600
		text := texts(t)
		e, err := expr.Parse(text, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		rule := rules(t)
		want := naive(e, z.loc, rule, from, until, step(z, from, until))
		for _, tick := range want {
			changes[tick.Note]++
		}

		src := New(e, z.loc, rule, time.Time{})
		after, last := After(instant(from+reach-1)), instant(until-reach-1)
		var got []Tick
		for limit := rapid.IntRange(1, 50).Draw(t, "limit"); ; {
			portion := src.Between(nil, after, last, limit)
			got = append(got, portion...)
			if len(portion) < limit {
				break
			}
			after = portion[limit-1]
			if rapid.Bool().Draw(t, "stored") {
				after = Tick{At: after.At, N: after.N}
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%q in %v by %v after %v:\n%v\nwant\n%v", text, z.loc, rule, instant(from+reach-1), written(got, z.loc), written(want, z.loc))
		}
		runsOf(t, src, want, instant(from+reach), last)
	})
	if changes[NoteMoved]+changes[NoteGap]+changes[NoteRepeat] == 0 { // each alone may be missing among few draws
		t.Errorf("no changes of a clock were drawn: %v", changes)
	}
}

// runsOf compares NextRun and LastRun with a list of all ticks of [from, until].
func runsOf(t *rapid.T, src Source, ticks []Tick, from, until time.Time) {
	runs := slices.DeleteFunc(slices.Clone(ticks), func(t Tick) bool { return !t.Runs() })
	now := from.Add(time.Duration(rapid.Int64Range(0, int64(until.Sub(from))).Draw(t, "now")))
	due, _ := slices.BinarySearchFunc(runs, now.Add(1), func(tick Tick, at time.Time) int { return tick.At.Compare(at) })
	if next, ok := src.NextRun(now); due < len(runs) && (!ok || next != runs[due]) {
		t.Fatalf("the next run after %v is %v, %v; want %v", now, next, ok, runs[due])
	}
	n := rapid.IntRange(1, 30).Draw(t, "n")
	last, ok := src.LastRun(from.Add(-1), now, n)
	if ok != (n <= due) || ok && last != runs[due-n] {
		t.Fatalf("the last run but %d up to %v is %v, %v; of %v", n-1, now, last, ok, runs[:due])
	}
}

// TestDailyRunsOncePerDay: by the default rule a daily time runs as often as the calendar has days, whatever the clock does.
func TestDailyRunsOncePerDay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.SampledFrom(zones).Draw(t, "zone")
		hour, minute := rapid.IntRange(0, 23).Draw(t, "hour"), rapid.IntRange(1, 59).Draw(t, "minute")
		text := fmt.Sprintf("%d %d * * *", minute, hour)
		year := rapid.IntRange(1970, 2120).Draw(t, "year")
		src := source(t, text, zone, Rule{})
		// At 00:00 the tick of a day that was left out and that of the next day would be one.
		from := time.Date(year, 1, 1, hour, minute, 0, 0, time.UTC)
		days := map[time.Time]int{}
		for tick := range src.All(After(from.AddDate(0, 0, -3))) {
			if tick.At.After(from.AddDate(1, 0, 3)) {
				break
			}
			if tick.Runs() {
				days[tick.Local]++
				if tick.Merged > 0 {
					t.Fatalf("%s in %s: %d times are one tick at %v", text, zone, tick.Merged+1, tick.At)
				}
			}
		}
		for day := from; day.Year() == year; day = day.AddDate(0, 0, 1) {
			if days[day] != 1 {
				t.Fatalf("%s in %s runs %d times for %v", text, zone, days[day], day)
			}
		}
	})
}

func written(ticks []Tick, loc *time.Location) string {
	text := ""
	for _, t := range ticks {
		text += fmt.Sprintf("%s %s\n", t.At.Format(time.RFC3339), line(t, loc))
	}
	return text
}

// line writes a tick in a row of text.
func line(t Tick, loc *time.Location) string {
	text := t.At.In(loc).Format("2006-01-02 15:04:05 -07:00")
	if t.Note != "" {
		text += fmt.Sprintf(" %s, named %s", t.Note, t.Local.Format("2006-01-02 15:04:05"))
	}
	if t.Merged > 0 {
		text += fmt.Sprintf(" and %d more", t.Merged)
	}
	if t.N > 0 {
		text += fmt.Sprintf(" #%d", t.N)
	}
	return text
}

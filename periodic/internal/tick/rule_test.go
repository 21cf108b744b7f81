package tick

import (
	"encoding"
	"fmt"
	"testing"
	"time"

	"github.com/peltonq/pelton/periodic/internal/expr"
)

type text interface {
	encoding.TextUnmarshaler
	fmt.Stringer
}

func TestTextForms(t *testing.T) {
	t.Parallel()
	kinds := map[string]func() text{
		"gap":     func() text { return new(Gap) },
		"overlap": func() text { return new(Overlap) },
		"missed":  func() text { return new(Missed) },
	}
	for _, test := range []struct{ kind, text, fault string }{
		{"gap", "next", ""},
		{"gap", "skip", ""},
		{"gap", "first", `times left out: "first" is not next or skip`},
		{"gap", "", `times left out: "" is not next or skip`},
		{"overlap", "first", ""},
		{"overlap", "last", ""},
		{"overlap", "both", ""},
		{"overlap", "Both", `repeated times: "Both" is not first, last or both`},
		{"missed", "skip", ""},
		{"missed", "latest", ""},
		{"missed", "all:3", ""},
		{"missed", "all:100000", ""},
		{"missed", "all:3:1h30m0s", ""},
		{"missed", "", `missed ticks: "" is not skip, latest, all:N or all:N:DURATION`},
		{"missed", "skip:1", `missed ticks: "skip:1" is not skip, latest, all:N or all:N:DURATION`},
		{"missed", "all", `missed ticks: "all" lacks how many at most, such as all:10`},
		{"missed", "all:", `missed ticks: in "all:", "" is not a number from 1 to 100000`},
		{"missed", "all:0", `missed ticks: in "all:0", "0" is not a number from 1 to 100000`},
		{"missed", "all:-1", `missed ticks: in "all:-1", "-1" is not a number from 1 to 100000`},
		{"missed", "all:100001", `missed ticks: in "all:100001", "100001" is not a number from 1 to 100000`},
		{"missed", "all:3:", `missed ticks: in "all:3:", "" is not a duration such as 12h or 30m`},
		{"missed", "all:3:2d", `missed ticks: in "all:3:2d", "2d" is not a duration such as 12h or 30m`},
		{"missed", "all:3:-1h", `missed ticks: in "all:3:-1h", "-1h" is not a duration such as 12h or 30m`},
		{"missed", "all:3:1h:2h", `missed ticks: "all:3:1h:2h" is not skip, latest, all:N or all:N:DURATION`},
	} {
		value := kinds[test.kind]()
		err := value.UnmarshalText([]byte(test.text))
		switch {
		case test.fault != "":
			if err == nil || err.Error() != test.fault {
				t.Errorf("%s %q: %v; want %s", test.kind, test.text, err, test.fault)
			}
		case err != nil:
			t.Errorf("%s %q: %v", test.kind, test.text, err)
		default:
			if value.String() != test.text {
				t.Errorf("%s %q is written %q", test.kind, test.text, value)
			}
			if other, ok := value.(encoding.TextMarshaler); ok {
				if text, err := other.MarshalText(); err != nil || string(text) != test.text {
					t.Errorf("%s %q is marshalled as %q, %v", test.kind, test.text, text, err)
				}
			}
		}
	}
	if rule := (Rule{}); rule.Gap.String() != "next" || rule.Overlap.String() != "first" || (Missed{}).String() != "skip" {
		t.Errorf("the defaults are %v and %v", rule, Missed{})
	}
}

func FuzzTextForms(f *testing.F) {
	for _, word := range []string{"next", "skip", "first", "last", "both", "latest", "all:3", "all:3:1h30m", "all:0x10", "all:+5:1us", "all:7:9223372036854775807ns"} {
		f.Add(word)
	}
	f.Fuzz(func(t *testing.T, word string) {
		for _, value := range []text{new(Gap), new(Overlap), new(Missed)} {
			if value.UnmarshalText([]byte(word)) != nil {
				continue
			}
			written := value.String()
			if err := value.UnmarshalText([]byte(written)); err != nil || value.String() != written {
				t.Errorf("%q is written %q and then %q: %v", word, written, value, err)
			}
		}
	})
}

// FuzzTicks: for any expression, zone, rule and instant, ticks are in order and none is lost where a caller stops.
func FuzzTicks(f *testing.F) {
	f.Add("30 2 * * *", "America/New_York", byte(0), int64(1772953200))
	f.Add("*/15 * * * *", "Australia/Lord_Howe", byte(5), int64(1775308000))
	f.Add("0 0/10 * ? * FRI", "Pacific/Apia", byte(1), int64(1325200000))
	f.Add("@every 90s", "UTC", byte(0), int64(-5))
	f.Fuzz(func(t *testing.T, text, zone string, rule byte, seconds int64) {
		e, err := expr.Parse(text, time.Time{})
		if err != nil {
			t.Skip("no expression")
		}
		loc, err := time.LoadLocation(zone)
		if err != nil {
			t.Skip("no zone")
		}
		src := New(e, loc, Rule{Gap: Gap(rule % 2), Overlap: Overlap(rule / 2 % 3)}, time.Unix(7, 0))
		after := After(time.Unix(seconds%10_000_000_000, 0))
		ticks := src.Between(nil, after, after.At.AddDate(1, 0, 0), 200)
		for i, tick := range ticks {
			if !after.before(tick) {
				t.Fatalf("%q in %s: %v comes after %v", text, zone, tick, after)
			}
			if i%10 == 0 {
				if next, ok := src.Next(after); !ok || next != tick {
					t.Fatalf("%q in %s: after %v comes %v, then %v", text, zone, after, tick, next)
				}
			}
			if tick.Runs() == (tick.Note == NoteGap || tick.Note == NoteRepeat) {
				t.Fatalf("%q in %s: %v runs, or not, against its note", text, zone, tick)
			}
			after = tick
		}
	})
}

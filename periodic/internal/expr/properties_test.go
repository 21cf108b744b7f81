package expr

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	"pgregory.net/rapid"
)

// item draws an item of a field: a value, a range or a step.
func item(t *rapid.T, f *field, most int) string {
	value := func(least int) (int, string) {
		v := rapid.IntRange(least, most).Draw(t, f.name)
		if v-f.min < len(f.names) && rapid.IntRange(0, 3).Draw(t, "named") == 0 {
			name := f.names[v-f.min]
			return v, rapid.SampledFrom([]string{name, strings.ToLower(name)}).Draw(t, "case")
		}
		return v, fmt.Sprint(v)
	}
	step := func() string { return fmt.Sprint(rapid.IntRange(1, min(most, 59)).Draw(t, "step")) }
	span := func() string {
		least := f.min
		low, text := value(least)
		if !f.wraps {
			least = low
		}
		_, high := value(least)
		return text + "-" + high
	}
	switch rapid.IntRange(0, 9).Draw(t, "item") {
	case 0, 1:
		return span()
	case 2:
		return span() + "/" + step()
	case 3, 4:
		return "*/" + step()
	case 5:
		_, text := value(f.min)
		return text + "/" + step()
	default:
		_, text := value(f.min)
		return text
	}
}

// list draws a field; whole is what says nothing.
func list(t *rapid.T, f *field, most int, whole string, special func() string) string {
	if rapid.IntRange(0, 2).Draw(t, "whole") == 0 {
		return whole
	}
	items := make([]string, rapid.SampledFrom([]int{1, 1, 1, 2, 3}).Draw(t, "items"))
	for i := range items {
		if special != nil && rapid.Bool().Draw(t, "special") {
			items[i] = special()
		} else {
			items[i] = item(t, f, most)
		}
	}
	return strings.Join(items, ",")
}

// standardText draws a standard expression.
func standardText(t *rapid.T) string {
	var fields []string
	for i := range standardFields {
		if i == 0 && rapid.Bool().Draw(t, "five fields") {
			continue
		}
		most := standardFields[i].max
		if i == 5 {
			most = 6
		}
		fields = append(fields, list(t, &standardFields[i], most, "*", nil))
	}
	return "cron:" + strings.Join(fields, " ")
}

// quartzText draws a Quartz expression.
func quartzText(t *rapid.T) string {
	number := func(least, most int) int { return rapid.IntRange(least, most).Draw(t, "number") }
	ofMonth := func() string {
		switch number(0, 4) {
		case 0:
			return "L"
		case 1:
			return "LW"
		case 2:
			return fmt.Sprintf("L-%d", number(0, 30))
		case 3:
			return fmt.Sprintf("L-%dW", number(0, 30))
		default:
			return fmt.Sprintf("%dW", number(1, 31))
		}
	}
	ofWeek := func() string {
		switch number(0, 3) {
		case 0:
			return "L"
		case 1:
			return fmt.Sprintf("%dL", number(1, 7))
		case 2:
			return rapid.SampledFrom(dayNames).Draw(t, "day") + "L"
		default:
			return fmt.Sprintf("%d#%d", number(1, 7), number(1, 5))
		}
	}
	fields := make([]string, 6, 7)
	for i := range fields {
		f := &quartzFields[i]
		fields[i] = list(t, f, f.max, "*", map[int]func() string{3: ofMonth, 5: ofWeek}[i])
	}
	if rapid.Bool().Draw(t, "days of the week") {
		fields[3] = rapid.SampledFrom([]string{"?", "*"}).Draw(t, "open")
	} else {
		fields[5] = rapid.SampledFrom([]string{"?", "*"}).Draw(t, "open")
	}
	if rapid.IntRange(0, 3).Draw(t, "year") == 0 {
		fields = append(fields, list(t, &quartzFields[6], 2199, "*", nil))
	}
	return "quartz:" + strings.Join(fields, " ")
}

// start draws a time between 1960 and 2180.
func start(t *rapid.T) time.Time {
	return time.Unix(rapid.Int64Range(-315619200, 6627000000).Draw(t, "start"), 0).UTC()
}

// years is how far the dumb scan looks. What comes more seldom is not drawn often.
const years = 12

func nextAsDumbScan(t *rapid.T, text string) {
	_, fields, _ := strings.Cut(text, ":")
	dumb := newNaive(fields, strings.HasPrefix(text, "quartz"))
	after := start(t)
	e, err := Parse(text, time.Time{})
	if err != nil {
		if !strings.Contains(err.Error(), "never comes") {
			t.Fatalf("%s: %v", text, err)
		}
		if got, ok := dumb.next(after, years); ok {
			t.Fatalf("%s is refused (%v) and comes %v", text, err, got)
		}
		return
	}
	for range 3 {
		want, ok := dumb.next(after, years)
		got, found := e.Next(after)
		if !ok {
			if found && got.Before(after.AddDate(years, 0, 0)) {
				t.Fatalf("%s after %v: %v, which the scan does not find", text, after, got)
			}
			return
		}
		if !found || !got.Equal(want) {
			t.Fatalf("%s after %v: %v, %v; want %v", text, after, got, found, want)
		}
		after = got
	}
}

// TestStandardAsDumbScan and TestQuartzAsDumbScan: random expressions name what a scan of every day and second finds.
func TestStandardAsDumbScan(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		if rapid.IntRange(0, 7).Draw(t, "sunday") == 0 { // 7, which robfig/cron does not have
			day := rapid.IntRange(0, 7).Draw(t, "from")
			nextAsDumbScan(t, fmt.Sprintf("cron:0 5 * * %d-7/%d", day, rapid.IntRange(1, 7).Draw(t, "by")))
			return
		}
		nextAsDumbScan(t, standardText(t))
	})
}

func TestQuartzAsDumbScan(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) { nextAsDumbScan(t, quartzText(t)) })
}

// TestStandardAsLibrary: a standard expression names what robfig/cron says, as far as that looks.
func TestStandardAsLibrary(t *testing.T) {
	t.Parallel()
	library := cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
	rapid.Check(t, func(t *rapid.T) {
		text := standardText(t)
		schedule, err := library.Parse(strings.TrimPrefix(text, "cron:"))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		e, err := Parse(text, time.Time{})
		after := start(t)
		for range 5 {
			want := schedule.Next(after)
			if want.IsZero() {
				return
			}
			if err != nil {
				t.Fatalf("%s: %v; the library gives %v", text, err, want)
			}
			got, ok := e.Next(after)
			if !ok || !got.Equal(want) {
				t.Fatalf("%s after %v: %v, %v; want %v", text, after, got, ok, want)
			}
			after = got
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"30 2 * * *", "*/15 6-22 1,15 JAN-MAR FRI-SUN", "0 0 12 * * ?", "0 15 10 ? * 6L 2026-2032", "0 0 2 L-3W * ?", "0 0 3 ? * MON#5", "@every 1h30m", "@daily",
		"quartz:0 /5 22-2 * * *", "cron:0 0 * * 5-7", "0 0 0 29 2 ? 2096/4", "TZ=UTC * * * * *", "0 0 \u00a0 * * ?",
	} {
		f.Add(text, int64(1_800_000_000))
	}
	f.Fuzz(func(t *testing.T, text string, seconds int64) {
		after := time.Unix(seconds%200_000_000_000, 0).UTC()
		e, err := Parse(text, time.Time{})
		if err != nil {
			if err.Error() == "" {
				t.Error("a fault without words")
			}
			return
		}
		if again, err := Parse(e.String(), time.Time{}); err != nil || again != e {
			t.Errorf("%q is not what it is written as, %q: %v", text, e, err)
		}
		if e.Kind() == Every {
			if e.Period() < time.Second {
				t.Errorf("%q: %v", text, e.Period())
			}
			return
		}
		_, fields := forced(e.String())
		if name, ok := descriptors[strings.ToLower(fields)]; ok {
			fields = name
		}
		dumb := newNaive(fields, e.Kind() == Quartz)
		next, ok := e.Next(after)
		if !ok {
			return
		}
		if !next.After(after) {
			t.Errorf("%q after %v: %v", text, after, next)
		}
		if year := next.Year(); (year >= 1970 && year <= 2199) && (!dumb.day(next.Truncate(24*time.Hour)) || !dumb.clock(next)) {
			t.Errorf("%q does not name %v", text, next)
		}
		if between, ok := e.Next(next.Add(-time.Second)); !ok || !between.Equal(next) {
			t.Errorf("%q: a second before %v comes %v", text, next, between)
		}
	})
}

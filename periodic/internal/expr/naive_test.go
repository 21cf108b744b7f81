package expr

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// naive is the dumb reading of an expression: it asks of each day, and of each second of it, whether every field allows it.
type naive struct {
	quartz bool
	fields [7]string // second, minute, hour, day of month, month, day of week, year
}

func newNaive(text string, quartz bool) naive {
	n := naive{quartz: quartz}
	fields := strings.Fields(strings.ToUpper(text))
	if len(fields) == 5 {
		fields = append([]string{"0"}, fields...)
	}
	if len(fields) == 6 {
		fields = append(fields, "*")
	}
	copy(n.fields[:], fields)
	return n
}

// next looks day by day for at most some years.
func (n naive) next(after time.Time, years int) (time.Time, bool) {
	until := after.AddDate(years, 0, 0)
	for day := after.Truncate(24 * time.Hour); day.Before(until); day = day.AddDate(0, 0, 1) {
		if !n.day(day) {
			continue
		}
		for t := day; t.Before(day.AddDate(0, 0, 1)); t = t.Add(time.Second) {
			if t.After(after) && n.clock(t) {
				return t, true
			}
			// Hours and minutes as a whole, to have an end.
			if !n.any(2, t.Hour(), 0, 23, nil) {
				t = t.Truncate(time.Hour).Add(time.Hour - time.Second)
			} else if !n.any(1, t.Minute(), 0, 59, nil) {
				t = t.Truncate(time.Minute).Add(time.Minute - time.Second)
			}
		}
	}
	return time.Time{}, false
}

func (n naive) clock(t time.Time) bool {
	return n.any(2, t.Hour(), 0, 23, nil) && n.any(1, t.Minute(), 0, 59, nil) && n.any(0, t.Second(), 0, 59, nil)
}

func (n naive) day(t time.Time) bool {
	if !n.any(4, int(t.Month()), 1, 12, monthNames) || n.fields[6] != "*" && !n.any(6, t.Year(), 1970, 2199, nil) {
		return false
	}
	if n.quartz {
		return n.quartzDayOfMonth(t) && n.quartzDayOfWeek(t)
	}
	dom := n.any(3, t.Day(), 1, 31, nil)
	dow := slices.ContainsFunc(strings.Split(n.fields[5], ","), func(item string) bool {
		if span, _, _ := strings.Cut(item, "/"); strings.HasSuffix(span, "7") {
			return has(item, int(t.Weekday()), 0, 7, dayNames) || t.Weekday() == time.Sunday && has(item, 7, 0, 7, dayNames)
		}
		return has(item, int(t.Weekday()), 0, 6, dayNames)
	})
	unrestricted := func(field string) bool {
		return slices.ContainsFunc(strings.Split(field, ","), func(item string) bool {
			return item == "*" || item == "?" || item == "*/1"
		})
	}
	if unrestricted(n.fields[3]) || unrestricted(n.fields[5]) {
		return dom && dow
	}
	return dom || dow
}

func (n naive) quartzDayOfMonth(t time.Time) bool {
	last := time.Date(t.Year(), t.Month()+1, 0, 0, 0, 0, 0, time.UTC)
	for item := range strings.SplitSeq(n.fields[3], ",") {
		rest, nearest := strings.CutSuffix(item, "W")
		var day time.Time
		switch {
		case strings.HasPrefix(rest, "L"):
			back, _ := strconv.Atoi(strings.TrimPrefix(rest[1:], "-"))
			day = last.AddDate(0, 0, -back)
		case nearest:
			v, _ := strconv.Atoi(rest)
			day = time.Date(t.Year(), t.Month(), v, 0, 0, 0, 0, time.UTC)
		case has(item, t.Day(), 1, 31, nil):
			return true
		default:
			continue
		}
		if day.Month() != t.Month() {
			continue // the month has no such day
		}
		if nearest {
			day = nearestWeekday(day)
		}
		if day.Equal(t) {
			return true
		}
	}
	return false
}

// nearestWeekday tries days in the order of their distance.
func nearestWeekday(day time.Time) time.Time {
	for _, by := range []int{0, -1, 1, -2, 2} {
		d := day.AddDate(0, 0, by)
		if d.Month() == day.Month() && d.Weekday() != time.Saturday && d.Weekday() != time.Sunday {
			return d
		}
	}
	panic("a month without weekdays")
}

func (n naive) quartzDayOfWeek(t time.Time) bool {
	weekday := int(t.Weekday()) + 1
	for item := range strings.SplitSeq(n.fields[5], ",") {
		day, nth, numbered := strings.Cut(item, "#")
		name, last := strings.CutSuffix(item, "L")
		switch {
		case numbered:
			if has(day, weekday, 1, 7, dayNames) && strconv.Itoa((t.Day()-1)/7+1) == nth {
				return true
			}
		case last && name == "":
			if weekday == 7 {
				return true
			}
		case last:
			if has(name, weekday, 1, 7, dayNames) && t.AddDate(0, 0, 7).Month() != t.Month() {
				return true
			}
		case has(item, weekday, 1, 7, dayNames):
			return true
		}
	}
	return false
}

// any reports whether an item of a field has the value.
func (n naive) any(field, v, least, most int, names []string) bool {
	return slices.ContainsFunc(strings.Split(n.fields[field], ","), func(item string) bool { return has(item, v, least, most, names) })
}

// has walks through an item's values, from the end of the field back to its beginning if it must.
func has(item string, v, least, most int, names []string) bool {
	span, step, stepped := strings.Cut(item, "/")
	by := 1
	if stepped {
		by, _ = strconv.Atoi(step)
	}
	value := func(text string) int {
		if i := slices.Index(names, text); i >= 0 {
			return least + i
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			panic(item)
		}
		return n
	}
	from, to := least, most
	if span != "*" && span != "?" && span != "" {
		low, high, ranged := strings.Cut(span, "-")
		from = value(low)
		switch {
		case ranged:
			to = value(high)
		case !stepped:
			to = from
		}
	}
	for at, passed := from, 0; passed <= most-least; at, passed = at+1, passed+1 {
		if at > most {
			at = least
		}
		if passed%by == 0 && at == v {
			return true
		}
		if at == to {
			return false
		}
	}
	return false
}

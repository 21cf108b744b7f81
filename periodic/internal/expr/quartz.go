package expr

import (
	"fmt"
	"strings"

	"github.com/peltonq/pelton/internal/quantity"
)

// The years that a Quartz expression may name.
const (
	minYear = 1970
	maxYear = 2199
)

var quartzFields = [7]field{
	{name: "second", min: 0, max: 59, wraps: true, maxStep: 59},
	{name: "minute", min: 0, max: 59, wraps: true, maxStep: 59},
	{name: "hour", min: 0, max: 23, wraps: true, maxStep: 23},
	{name: "day of month", min: 1, max: 31, wraps: true, maxStep: 31},
	{name: "month", min: 1, max: 12, names: monthNames, wraps: true, maxStep: 12},
	{name: "day of week", min: 1, max: 7, names: dayNames, wraps: true, maxStep: 7},
	{name: "year", min: minYear, max: maxYear},
}

func readQuartz(e *Expr, texts []string) error {
	if len(texts) != 6 && len(texts) != 7 {
		return &FieldError{
			FieldExpression, e.text,
			fmt.Sprintf("has %s; Quartz has 6, with seconds first, or 7 with a year", quantity.Of(len(texts), "field")),
		}
	}
	specials := [7]func(string) (bool, string){3: e.days.dayOfMonth, 5: e.days.dayOfWeek}
	values := make([]set, len(texts))
	faults := make([]*FieldError, len(texts), len(texts)+1)
	for i, text := range texts {
		if text == "?" && specials[i] != nil {
			text = "*"
		}
		values[i], faults[i] = quartzFields[i].read(text, specials[i])
	}
	faults = append(faults, bothDays(texts[3], texts[5]))
	if err := join(faults); err != nil {
		return err
	}
	e.second, e.minute, e.hour, e.month = values[0][0], values[1][0], values[2][0], values[4][0]
	e.days.dom, e.days.dow = values[3][0], values[5][0]>>1
	e.anyYear = len(texts) == 6 || texts[6] == "*"
	if !e.anyYear {
		e.years = values[6]
	}
	return nil
}

// bothDays refuses what Quartz does not define: two day fields that say something, or none.
func bothDays(dom, dow string) *FieldError {
	open := func(text string) bool { return text == "*" || text == "?" }
	switch {
	case dom == "?" && dow == "?":
		return &FieldError{"day of week", dow, "? stands in both day fields; one of them says the days, * for every day"}
	case !open(dom) && !open(dow):
		return &FieldError{"day of week", dow, fmt.Sprintf("Quartz takes days of the month (%s) or of the week (%s), and ? for the other", dom, dow)}
	default:
		return nil
	}
}

// dayOfMonth takes L, L-3, LW, L-3W and 15W.
func (d *days) dayOfMonth(item string) (bool, string) {
	rest, nearest := strings.CutSuffix(item, "W")
	back, last := strings.CutPrefix(rest, "L")
	switch {
	case last:
		before := 0
		if back != "" {
			var ok bool
			text, dash := strings.CutPrefix(back, "-")
			if before, ok = number(text); !ok || !dash {
				return false, fmt.Sprintf("%q is not L, LW, L-3 or L-3W", item)
			}
			if before > 30 {
				return false, fmt.Sprintf("%d in %q is above 30", before, item)
			}
		}
		if nearest {
			d.lastNearest |= 1 << before
		} else {
			d.last |= 1 << before
		}
		return true, ""
	case nearest:
		v, reason := quartzFields[3].value(rest)
		if reason != "" {
			return false, fmt.Sprintf("W in %q follows a single day, such as 15W", item)
		}
		d.nearest |= 1 << v
		return true, ""
	default:
		return false, ""
	}
}

// dayOfWeek takes L, 6L, FRIL, 6#3 and FRI#3.
func (d *days) dayOfWeek(item string) (bool, string) {
	f := &quartzFields[5]
	if day, nth, ok := strings.Cut(item, "#"); ok {
		v, reason := f.value(day)
		if reason != "" {
			return false, fmt.Sprintf("%s in %q", reason, item)
		}
		n, ok := number(nth)
		if !ok || n < 1 || n > 5 {
			return false, fmt.Sprintf("what follows # in %q is not 1 to 5", item)
		}
		d.nth |= 1 << ((v-1)*5 + n - 1)
		return true, ""
	}
	day, last := strings.CutSuffix(item, "L")
	switch {
	case !last:
		return false, ""
	case day == "":
		d.weekEnd = true
		return true, ""
	}
	v, reason := f.value(day)
	if reason != "" {
		return false, fmt.Sprintf("%s in %q", reason, item)
	}
	d.lastDow |= 1 << (v - 1)
	return true, ""
}

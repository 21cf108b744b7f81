package expr

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/robfig/cron/v3"

	"github.com/peltonq/pelton/internal/quantity"
)

// standardFields are those of an expression with seconds. 7 is Sunday, so that ranges may end there.
var standardFields = [6]field{
	{name: "second", min: 0, max: 59},
	{name: "minute", min: 0, max: 59},
	{name: "hour", min: 0, max: 23},
	{name: "day of month", min: 1, max: 31},
	{name: "month", min: 1, max: 12, names: monthNames},
	{name: "day of week", min: 0, max: 7, names: dayNames},
}

// standardParser is the one that says what a standard expression means.
var standardParser = cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// starred is the bit by which robfig/cron marks a field that begins with a star and restricts nothing.
const starred = 1 << 63

// readStandard takes the meaning from robfig/cron. The fields are read here too, to say which one is wrong and why, and to refuse what the
// library lets through: empty items, "*-5".
func readStandard(e *Expr, texts []string) error {
	switch len(texts) {
	case 5:
		texts = append([]string{"0"}, texts...)
	case 6:
		texts = append([]string(nil), texts...)
	default:
		return &FieldError{
			FieldExpression, e.text,
			fmt.Sprintf("has %s; standard cron has 5, or 6 with seconds first, and Quartz 6 or 7", quantity.Of(len(texts), "field")),
		}
	}
	faults := make([]*FieldError, len(texts))
	for i := range texts {
		if i == 5 {
			texts[i] = sundayLast(texts[i])
		}
		_, faults[i] = standardFields[i].read(texts[i], standardSpecial(i))
	}
	if err := join(faults); err != nil {
		return err
	}
	texts[5] = sundayFirst(texts[5])
	schedule, err := standardParser.Parse(strings.Join(texts, " "))
	if err != nil {
		return &FieldError{FieldExpression, e.text, err.Error()}
	}
	spec, ok := schedule.(*cron.SpecSchedule)
	if !ok {
		return &FieldError{FieldExpression, e.text, fmt.Sprintf("is a %T, which has no fields", schedule)}
	}
	e.second, e.minute, e.hour, e.month = spec.Second&^starred, spec.Minute&^starred, spec.Hour&^starred, spec.Month&^starred
	e.days = days{
		dom: spec.Dom &^ starred, dow: spec.Dow &^ starred,
		either: spec.Dom&starred == 0 && spec.Dow&starred == 0,
	}
	e.anyYear = true
	return nil
}

// standardSpecial takes ? for * in the day fields, as robfig/cron does, and tells what only Quartz has.
func standardSpecial(i int) func(string) (bool, string) {
	if i != 3 && i != 5 {
		return nil
	}
	return func(item string) (bool, string) {
		_, isName := standardFields[i].value(item)
		switch {
		case item == "?":
			return true, ""
		case isName != "" && (strings.ContainsAny(item, "#") || strings.HasSuffix(item, "L") || i == 3 && strings.ContainsAny(item, "LW")):
			return false, fmt.Sprintf("%q is Quartz, which has 6 or 7 fields, with seconds first", item)
		default:
			return false, ""
		}
	}
}

// sundayLast makes a range that goes on to Sunday end with 7.
func sundayLast(text string) string {
	items := strings.Split(strings.ToUpper(text), ",")
	for i, item := range items {
		span, step, stepped := strings.Cut(item, "/")
		low, isRange := strings.CutSuffix(span, "-SUN")
		if from, _ := standardFields[5].value(low); !isRange || from == 0 {
			continue
		}
		items[i] = low + "-7"
		if stepped {
			items[i] += "/" + step
		}
	}
	return strings.Join(items, ",")
}

// sundayFirst writes 7 as 0, for robfig/cron, which has no 7: an item that ends there as the list of its days.
func sundayFirst(text string) string {
	items := strings.Split(text, ",")
	for i, item := range items {
		if span, _, _ := strings.Cut(item, "/"); !strings.HasSuffix(span, "7") {
			continue
		}
		var values set
		standardFields[5].readItem(item, &values)
		var list []string
		for rest := values[0]&0x7f | values[0]>>7; rest != 0; rest &= rest - 1 {
			list = append(list, strconv.Itoa(bits.TrailingZeros64(rest)))
		}
		items[i] = strings.Join(list, ",")
	}
	return strings.Join(items, ",")
}

package expr

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
)

const (
	// maxText bounds the length of an expression.
	maxText = 1000
	// maxPeriod bounds the period of @every.
	maxPeriod = 366 * 24 * time.Hour
)

// Kind says how an expression names its times.
type Kind uint8

// The kinds of expressions.
const (
	// Standard is cron with five fields, or six with seconds, or a descriptor such as @hourly.
	Standard Kind = iota + 1
	// Quartz is Quartz with six or seven fields.
	Quartz
	// Every is a period of elapsed time, which names no times of a clock.
	Every
)

func (k Kind) String() string {
	switch k {
	case Standard:
		return "cron"
	case Quartz:
		return "quartz"
	case Every:
		return "every"
	default:
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
}

// An Expr is an expression that has been read. It holds no pointer to anything that changes.
type Expr struct {
	text   string
	kind   Kind
	period time.Duration

	second, minute, hour, month uint64
	days                        days
	years                       set
	anyYear                     bool
}

// String returns the expression as it was written.
func (e Expr) String() string { return e.text }

// Kind returns how the expression names its times.
func (e Expr) Kind() Kind { return e.kind }

// Period returns the period of an expression of kind Every, otherwise 0.
func (e Expr) Period() time.Duration { return e.period }

// Parse reads an expression. Its faults are FieldErrors, joined if there are several.
//
// An expression that names no time at or after the wall-clock time now is refused; the zero time stands for the beginning of all time, so that
// an expression is read again when its last time has passed.
func Parse(text string, now time.Time) (Expr, error) {
	e, err := parse(strings.TrimSpace(text))
	if err != nil {
		return Expr{}, err
	}
	if err := e.comes(now); err != nil {
		return Expr{}, err
	}
	return e, nil
}

func parse(text string) (Expr, error) {
	if err := checkText(text); err != nil {
		return Expr{}, err
	}
	kind, rest := forced(text)
	if strings.HasPrefix(rest, "@") {
		if kind == Quartz {
			return Expr{}, &FieldError{FieldExpression, text, "Quartz has no " + rest}
		}
		return parseDescriptor(text, rest)
	}
	fields := strings.Fields(rest)
	if kind == 0 {
		kind = dialect(fields)
	}
	e := Expr{text: text, kind: kind}
	var err error
	if kind == Quartz {
		err = readQuartz(&e, fields)
	} else {
		err = readStandard(&e, fields)
	}
	return e, err
}

// checkText refuses what no dialect has.
func checkText(text string) error {
	switch upper := strings.ToUpper(text); {
	case text == "":
		return &FieldError{FieldExpression, "", "is empty; give five fields such as 0 2 * * *"}
	case len(text) > maxText:
		return &FieldError{FieldExpression, text[:20], fmt.Sprintf("has %d bytes, more than %d", len(text), maxText)}
	case strings.HasPrefix(upper, "TZ="), strings.HasPrefix(upper, "CRON_TZ="):
		zone, _, _ := strings.Cut(text, " ")
		return &FieldError{FieldZone, zone, "belongs to the schedule, not to its expression: " + zone}
	}
	for _, r := range text {
		if r > unicode.MaxASCII && !unicode.IsSpace(r) {
			return &FieldError{FieldExpression, text, fmt.Sprintf("holds %q, which no field has", r)}
		}
	}
	return nil
}

// forced returns the dialect that a prefix asks for, and what follows it.
func forced(text string) (Kind, string) {
	prefix, rest, found := strings.Cut(text, ":")
	switch {
	case found && strings.EqualFold(prefix, "quartz"):
		return Quartz, strings.TrimSpace(rest)
	case found && strings.EqualFold(prefix, "cron"):
		return Standard, strings.TrimSpace(rest)
	default:
		return 0, text
	}
}

// dialect tells Quartz from standard cron by the fields.
func dialect(fields []string) Kind {
	if len(fields) == 7 || len(fields) == 6 && (hasMark(fields[3], "?LW") || strings.ContainsAny(fields[5], "?#") || endsWithL(fields[5])) {
		return Quartz
	}
	return Standard
}

func hasMark(field, marks string) bool { return strings.ContainsAny(strings.ToUpper(field), marks) }

// endsWithL tells 6L and FRIL from the names of days, none of which ends so.
func endsWithL(field string) bool {
	for item := range strings.SplitSeq(field, ",") {
		if strings.HasSuffix(strings.ToUpper(item), "L") {
			return true
		}
	}
	return false
}

// descriptors are the names of standard expressions.
var descriptors = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

func parseDescriptor(text, name string) (Expr, error) {
	words := strings.Fields(name)
	if strings.EqualFold(words[0], "@every") {
		return parseEvery(text, words[1:])
	}
	fields, ok := descriptors[strings.ToLower(name)]
	if !ok {
		return Expr{}, &FieldError{
			FieldExpression, name,
			fmt.Sprintf("%s is not known; there are @yearly, @monthly, @weekly, @daily, @hourly and @every DURATION", name),
		}
	}
	e := Expr{text: text, kind: Standard}
	err := readStandard(&e, strings.Fields(fields))
	return e, err
}

func parseEvery(text string, words []string) (Expr, error) {
	value := strings.Join(words, " ")
	period, err := time.ParseDuration(value)
	switch {
	case err != nil:
		return Expr{}, &FieldError{FieldPeriod, value, fmt.Sprintf("%q is not a duration such as 90s, 10m or 1h30m", value)}
	case period < time.Second:
		return Expr{}, &FieldError{FieldPeriod, value, value + " is below 1s"}
	case period > maxPeriod:
		return Expr{}, &FieldError{FieldPeriod, value, value + " is above 8784h, a year"}
	case period%time.Second != 0:
		return Expr{}, &FieldError{FieldPeriod, value, value + " has parts of a second"}
	}
	return Expr{text: text, kind: Every, period: period}, nil
}

// comes refuses an expression that names no time at or after now.
func (e Expr) comes(now time.Time) error {
	if e.kind == Every {
		return nil
	}
	if _, ok := e.Next(time.Time{}); !ok {
		return e.never()
	}
	if _, ok := e.Next(now.Add(-time.Second)); !ok {
		fields := strings.Fields(e.text)
		year := fields[len(fields)-1]
		return &FieldError{"year", year, fmt.Sprintf("nothing of %s is left after %s", year, now.Format(time.DateTime))}
	}
	return nil
}

// never says which field keeps the expression from ever coming: days that the months do not have.
func (e Expr) never() error {
	_, rest := forced(e.text)
	fields := strings.Fields(rest)
	if len(fields) == 5 {
		fields = append([]string{"0"}, fields...)
	}
	name, value := "day of month", fields[3]
	if value == "*" || value == "?" {
		name, value = "day of week", fields[5]
	}
	var months []string
	for m := time.January; m <= time.December; m++ {
		if e.month>>m&1 == 1 {
			months = append(months, m.String())
		}
	}
	reason := fmt.Sprintf("%s never comes in %s", value, strings.Join(months, ", "))
	if !e.anyYear {
		reason += " of " + fields[6]
	}
	return &FieldError{name, value, reason}
}

// join joins the faults that are not nil.
func join(faults []*FieldError) error {
	errs := make([]error, 0, len(faults))
	for _, fault := range faults {
		if fault != nil {
			errs = append(errs, fault)
		}
	}
	return errors.Join(errs...)
}

package expr

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func parsed(t testing.TB, text string) Expr {
	t.Helper()
	e, err := Parse(text, time.Time{})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return e
}

func at(text string) time.Time {
	t, err := time.Parse(time.DateTime, text)
	if err != nil {
		panic(err)
	}
	return t
}

func TestNext(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ text, after, want string }{
		{"30 2 * * *", "2026-03-08 02:29:59", "2026-03-08 02:30:00"},
		{"30 2 * * *", "2026-03-08 02:30:00", "2026-03-09 02:30:00"},
		{"*/15 * * * *", "2026-12-31 23:45:00", "2027-01-01 00:00:00"},
		{"*/10 * * * * *", "2026-12-31 23:59:50", "2027-01-01 00:00:00"},
		{"0,15,30,45 6-22 * * *", "2026-05-05 22:45:00", "2026-05-06 06:00:00"},
		{"0 0 31 * *", "2026-01-31 00:00:00", "2026-03-31 00:00:00"},
		{"0 12 13 * FRI", "2026-02-13 12:00:00", "2026-02-20 12:00:00"}, // either
		{"0 0 * * 7", "2026-11-28 00:00:00", "2026-11-29 00:00:00"},
		{"0 0 * * 6-7", "2026-11-29 00:00:00", "2026-12-05 00:00:00"},
		{"0 0 * * FRI-SUN", "2026-11-29 00:00:00", "2026-12-04 00:00:00"},
		{"0 0 * * 1/2", "2026-11-27 00:00:00", "2026-11-30 00:00:00"}, // Sunday is no day after Friday
		{"0 0 12 * * 2", "2026-11-29 12:00:00", "2026-12-01 12:00:00"},
		{"cron:0 0 12 * * 2", "2026-11-29 12:00:00", "2026-12-01 12:00:00"},
		{"quartz:0 0 12 * * 2", "2026-11-29 12:00:00", "2026-11-30 12:00:00"},
		{"cron: 0 12 ? * *", "2026-11-29 12:00:00", "2026-11-30 12:00:00"},
		{"0 0 12 * JUL WED", "2026-11-29 12:00:00", "2027-07-07 12:00:00"},
		{"@hourly", "2026-11-29 12:00:00", "2026-11-29 13:00:00"},
		{"@weekly", "2026-11-27 12:00:00", "2026-11-29 00:00:00"},
		{"@Yearly", "2026-11-27 12:00:00", "2027-01-01 00:00:00"},

		{"0 0 12 * * ?", "2026-11-29 12:00:00", "2026-11-30 12:00:00"},
		{"0 0/5 14,18 * * ?", "2026-11-29 14:55:00", "2026-11-29 18:00:00"},
		{"0 0 12 1/5 * ?", "2028-02-28 12:00:00", "2028-03-01 12:00:00"},
		{"0 15 10 L * ?", "2028-02-01 00:00:00", "2028-02-29 10:15:00"},
		{"0 15 10 L-3 * ?", "2026-02-01 00:00:00", "2026-02-25 10:15:00"},
		{"0 0 2 LW * ?", "2026-01-31 00:00:00", "2026-02-27 02:00:00"},
		{"0 0 2 L-3W * ?", "2026-02-01 00:00:00", "2026-02-25 02:00:00"},
		{"0 0 2 15W * ?", "2026-02-01 00:00:00", "2026-02-16 02:00:00"}, // a Sunday
		{"0 0 2 15W * ?", "2026-08-01 00:00:00", "2026-08-14 02:00:00"}, // a Saturday
		{"0 0 2 1W * ?", "2026-07-31 02:00:00", "2026-08-03 02:00:00"},  // not back into July
		{"0 0 2 31W * ?", "2026-05-01 00:00:00", "2026-05-29 02:00:00"}, // not on into June
		{"0 0 2 31W * ?", "2026-05-29 02:00:00", "2026-07-31 02:00:00"}, // June has no 31st
		{"0 0 2 1,L * ?", "2026-01-01 02:00:00", "2026-01-31 02:00:00"},
		{"0 15 10 ? * 6L", "2026-11-01 00:00:00", "2026-11-27 10:15:00"},
		{"0 15 10 ? * 2L", "2026-11-24 00:00:00", "2026-11-30 10:15:00"}, // the last day too
		{"0 15 10 ? * fril", "2026-11-01 00:00:00", "2026-11-27 10:15:00"},
		{"0 15 10 ? * 6#3", "2026-11-01 00:00:00", "2026-11-20 10:15:00"},
		{"0 15 10 ? * MON#5", "2026-11-30 10:15:00", "2027-03-29 10:15:00"},
		{"0 15 10 ? * MON#1,MON#3", "2026-11-02 10:15:00", "2026-11-16 10:15:00"},
		{"0 0 6 ? * L", "2026-11-29 00:00:00", "2026-12-05 06:00:00"},
		{"0 0 6 ? * FRI-MON", "2026-11-30 06:00:00", "2026-12-04 06:00:00"},
		{"0 0 22-2 * * ?", "2026-11-30 02:00:00", "2026-11-30 22:00:00"},
		{"0 0 6 1 NOV-FEB ?", "2026-02-01 06:00:00", "2026-11-01 06:00:00"},
		{"0 /20 6 * * ?", "2026-02-01 06:00:00", "2026-02-01 06:20:00"},
		{"0 0 0 1 1 ? 2028,2032", "2028-01-01 00:00:00", "2032-01-01 00:00:00"},
		{"0 0 0 31 12 ? 2030/5", "2035-12-31 00:00:00", "2040-12-31 00:00:00"},
		{"0 0 0 1 1 ? 2199", "2026-01-01 00:00:00", "2199-01-01 00:00:00"},

		// robfig/cron gives up after five years.
		{"0 0 29 2 *", "2096-02-29 00:00:00", "2104-02-29 00:00:00"},
		{"0 0 0 29 2 ?", "2096-02-29 00:00:00", "2104-02-29 00:00:00"},
		{"0 0 0 ? 2 MON#5", "2072-03-01 00:00:00", "2112-02-29 00:00:00"},
	} {
		got, ok := parsed(t, test.text).Next(at(test.after))
		if !ok || !got.Equal(at(test.want)) || got.Location() != time.UTC {
			t.Errorf("%s after %s: %v, %v; want %s", test.text, test.after, got, ok, test.want)
		}
	}
}

// TestNextIsLater: parts of a second count.
func TestNextIsLater(t *testing.T) {
	t.Parallel()
	e := parsed(t, "* * * * * *")
	second := at("2026-11-29 12:00:00")
	for _, after := range []time.Time{second.Add(-time.Nanosecond), second.Add(-time.Second)} {
		if got, _ := e.Next(after); !got.Equal(second) {
			t.Errorf("after %v: %v", after, got)
		}
	}
	if got, _ := e.Next(second.Add(time.Nanosecond)); !got.Equal(second.Add(time.Second)) {
		t.Error(got)
	}
}

func TestNextEnds(t *testing.T) {
	t.Parallel()
	for text, last := range map[string]string{
		"0 0 0 1 1 ? 2028,2032": "2032-01-01 00:00:00",
		"0 0 0 1 1 ? 2199":      "2199-01-01 00:00:00",
		"@yearly":               "9999-01-01 00:00:00",
		"0 0 29 2 *":            "9996-02-29 00:00:00",
	} {
		e := parsed(t, text)
		if got, ok := e.Next(at(last).Add(-time.Second)); !ok || !got.Equal(at(last)) {
			t.Errorf("%s: before the last: %v, %v", text, got, ok)
		}
		if got, ok := e.Next(at(last)); ok {
			t.Errorf("%s: after the last: %v", text, got)
		}
	}
}

func TestKinds(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Kind{
		"0 2 * * *": Standard, "* * * * ?": Standard, "@daily": Standard, "0 0 2 * * *": Standard, "0 0 12 * JUL WED": Standard,
		"cron:0 0 12 ? * *": Standard, " Cron: 0 2 * * *": Standard, "cron:@daily": Standard,
		"0 0 2 * * ?": Quartz, "0 0 2 ? * *": Quartz, "0 0 2 L * *": Quartz, "0 0 2 1w * *": Quartz, "0 0 2 * * 6L": Quartz, "0 0 2 * * wed#1": Quartz,
		"0 0 2 * * WED,FRIL": Quartz, "0 0 2 * * * 2100": Quartz, "quartz:0 0 2 * * *": Quartz, "QUARTZ:0 0 2 1 * *": Quartz,
		"@every 10m": Every,
	} {
		e := parsed(t, text)
		if e.Kind() != want {
			t.Errorf("%s is %v", text, e.Kind())
		}
		if e.String() != strings.TrimSpace(text) {
			t.Errorf("%s is written %s", text, e)
		}
	}
}

func TestEvery(t *testing.T) {
	t.Parallel()
	e := parsed(t, "@every 1h30m")
	if e.Period() != 90*time.Minute {
		t.Error(e.Period())
	}
	if got, ok := e.Next(at("2026-11-29 12:00:00")); ok {
		t.Errorf("a period names %v", got)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	now := at("2026-11-29 12:00:00")
	for text, want := range map[string]string{
		"":                      "expression: is empty; give five fields such as 0 2 * * *",
		"noon":                  "expression: has 1 field; standard cron has 5, or 6 with seconds first, and Quartz 6 or 7",
		"1 2 3":                 "expression: has 3 fields; standard cron has 5, or 6 with seconds first, and Quartz 6 or 7",
		"quartz:0 12 * * ?":     "expression: has 5 fields; Quartz has 6, with seconds first, or 7 with a year",
		"cron:0 0 0 1 1 * 2027": "expression: has 7 fields; standard cron has 5, or 6 with seconds first, and Quartz 6 or 7",
		"1 2 3 4 5 6 7 8":       "expression: has 8 fields; standard cron has 5, or 6 with seconds first, and Quartz 6 or 7",
		"TZ=UTC":                "time zone: belongs to the schedule, not to its expression: TZ=UTC",
		"CRON_TZ=UTC 0 2 * * *": "time zone: belongs to the schedule, not to its expression: CRON_TZ=UTC",
		"@reboot":               "expression: @reboot is not known; there are @yearly, @monthly, @weekly, @daily, @hourly and @every DURATION",
		"quartz:@daily":         "expression: Quartz has no @daily",
		"@every":                `period: "" is not a duration such as 90s, 10m or 1h30m`,
		"@every 1d":             `period: "1d" is not a duration such as 90s, 10m or 1h30m`,
		"@every 100ms":          "period: 100ms is below 1s",
		"@every -1h":            "period: -1h is below 1s",
		"@every 1.5s":           "period: 1.5s has parts of a second",
		"@every 8785h":          "period: 8785h is above 8784h, a year",

		"60 * * * *":          "minute: 60 is above 59",
		"* 24 * * *":          "hour: 24 is above 23",
		"60 * * * * *":        "second: 60 is above 59",
		"0 0 32 * *":          "day of month: 32 is above 31",
		"0 0 0 * *":           "day of month: 0 is below 1",
		"0 0 * 13 *":          "month: 13 is above 12",
		"0 0 * * 8":           "day of week: 8 is above 7",
		"0 0 * * MOO":         `day of week: "MOO" is not a number from 0 to 7 or a name such as MON`,
		"0 0 * FEBR *":        `month: "FEBR" is not a number from 1 to 12 or a name such as FEB`,
		"61 25 * * *":         "minute: 61 is above 59\nhour: 25 is above 23",
		"x * * * *":           `minute: "X" is not a number from 0 to 59`,
		"+5 * * * *":          `minute: "+5" is not a number from 0 to 59`,
		"1,,2 * * * *":        "minute: a value is missing",
		", * * * *":           "minute: a value is missing",
		"1- * * * *":          "minute: a value is missing",
		"/5 * * * *":          "minute: a value is missing",
		"*-5 * * * *":         `minute: "*" is not a number from 0 to 59`,
		"1-2-3 * * * *":       `minute: "2-3" is not a number from 0 to 59`,
		"30-10 * * * *":       "minute: the range 30-10 goes backwards",
		"*/0 * * * *":         `minute: the step in "*/0" is 0`,
		"*/x * * * *":         `minute: the step in "*/X" is not a number`,
		"*/5/5 * * * *":       `minute: the step in "*/5/5" is not a number`,
		"? * * * *":           `minute: "?" is not a number from 0 to 59`,
		"0 0 L * *":           `day of month: "L" is Quartz, which has 6 or 7 fields, with seconds first`,
		"0 0 15W * *":         `day of month: "15W" is Quartz, which has 6 or 7 fields, with seconds first`,
		"0 0 * * 6#3":         `day of week: "6#3" is Quartz, which has 6 or 7 fields, with seconds first`,
		"0 0 * * FRIL":        `day of week: "FRIL" is Quartz, which has 6 or 7 fields, with seconds first`,
		"0 0 * * \u0130":      "expression: holds 'İ', which no field has",
		"0 0 * * \u017fun":    "expression: holds 'ſ', which no field has",
		"99999999999 * * * *": `minute: "99999999999" is not a number from 0 to 59`,

		"0 0 0 ? * ?":           "day of week: ? stands in both day fields; one of them says the days, * for every day",
		"0 0 0 1 * 2 2030":      "day of week: Quartz takes days of the month (1) or of the week (2), and ? for the other",
		"0 0 0 ?/2 * *":         `day of month: "?" is not a number from 1 to 31`,
		"? 0 0 ? * *":           `second: "?" is not a number from 0 to 59`,
		"0 0/60 0 ? * *":        `minute: the step in "0/60" is above 59`,
		"0 0 0 L-31 * ?":        `day of month: 31 in "L-31" is above 30`,
		"0 0 0 L3 * ?":          `day of month: "L3" is not L, LW, L-3 or L-3W`,
		"0 0 0 1-5W * ?":        `day of month: W in "1-5W" follows a single day, such as 15W`,
		"0 0 0 32W * ?":         `day of month: W in "32W" follows a single day, such as 15W`,
		"0 0 0 ? * 0":           "day of week: 0 is below 1",
		"0 0 0 ? * 8L":          `day of week: 8 is above 7 in "8L"`,
		"0 0 0 ? * 2#6":         `day of week: what follows # in "2#6" is not 1 to 5`,
		"0 0 0 ? * 2#":          `day of week: what follows # in "2#" is not 1 to 5`,
		"0 0 0 ? * #2":          `day of week: a value is missing in "#2"`,
		"0 0 0 1 1 ? 1969":      "year: 1969 is below 1970",
		"0 0 0 1 1 ? 2200":      "year: 2200 is above 2199",
		"0 0 0 1 1 ? 2030-2020": "year: the range 2030-2020 goes backwards",

		"0 0 30 2 *":                            "day of month: 30 never comes in February",
		"0 0 31 4,6,9,11 *":                     "day of month: 31 never comes in April, June, September, November",
		"0 0 0 30 2 ?":                          "day of month: 30 never comes in February",
		"0 0 0 L-30 2 ?":                        "day of month: L-30 never comes in February",
		"0 0 0 29 2 ? 2027":                     "day of month: 29 never comes in February of 2027",
		"0 0 0 ? 2 MON#5 2030":                  "day of week: MON#5 never comes in February of 2030",
		"0 0 0 1 1 ? 2026":                      "year: nothing of 2026 is left after 2026-11-29 12:00:00",
		"0 0 0 * * ? 2020-2025":                 "year: nothing of 2020-2025 is left after 2026-11-29 12:00:00",
		strings.Repeat("1,", 600) + "1 * * * *": "expression: has 1209 bytes, more than 1000",
	} {
		_, err := Parse(text, now)
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v; want %s", text, err, want)
		}
		var fault *FieldError
		if err != nil && !errors.As(err, &fault) {
			t.Errorf("%s: %T is no FieldError", text, err)
		}
	}
	// The last moment of an expression is not past.
	if _, err := Parse("0 0 12 29 11 ? 2026", now); err != nil {
		t.Error(err)
	}
	if _, err := Parse("0 0 0 1 1 ? 2020", time.Time{}); err != nil {
		t.Error(err)
	}
}

func BenchmarkNext(b *testing.B) {
	for _, text := range []string{
		"*/15 * * * *", "30 2 * * *", "0 9 * * MON-FRI", "0 0 29 2 *", "0 15 10 ? * 6L", "0 0 2 LW * ?", "0 0 0 ? 2 MON#5", "0 0 0 1 1 ? 2199",
	} {
		b.Run(text, func(b *testing.B) {
			e := parsed(b, text)
			start := at("2026-11-29 12:00:00")
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := e.Next(start); !ok {
					b.Fatal("none")
				}
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	for _, text := range []string{"*/15 * * * *", "0 0,30 8-18 ? * MON-FRI"} {
		b.Run(text, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				parsed(b, text)
			}
		})
	}
}

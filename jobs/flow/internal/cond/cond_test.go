package cond

import (
	"errors"
	"strings"
	"testing"
)

// outputs answers from a map with keys "job:param".
func outputs(m map[string]string) func(job, param string) (string, bool) {
	return func(job, param string) (string, bool) {
		v, ok := m[job+":"+param]
		return v, ok
	}
}

func TestEval(t *testing.T) {
	t.Parallel()
	out := outputs(map[string]string{
		"a:x": "10", "a:word": "foo", "b:y": "9", "b:same": "10.0", "a:empty": "", "a:big": "100000000000000000000000000001",
		"b:big": "100000000000000000000000000000", "a:exp": "1e3", "a:minus": "-2", "a:quote": "it's", "job one:my-param": "1",
	})
	allFine := Parents{Succeeded: 2}
	tests := []struct {
		text    string
		parents Parents
		want    bool
	}{
		{"", allFine, true},
		{"", Parents{Succeeded: 1, Failed: 1}, false},
		{"  ", Parents{}, true},
		{"all_success", allFine, true},
		{"ALL_SUCCESS", Parents{Succeeded: 1, Failed: 1}, false},
		{"All_Done", Parents{Failed: 2}, true},
		{"all_failed", Parents{Failed: 2}, true},
		{"all_failed", Parents{Succeeded: 1, Failed: 2}, false},
		{"one_success", Parents{Succeeded: 1, Failed: 2}, true},
		{"one_success", Parents{Failed: 2}, false},
		{"one_failed", Parents{Succeeded: 1, Failed: 2}, true},
		{"one_failed", allFine, false},
		{"one_failed", Parents{}, true},
		{"!one_failed", allFine, true},

		{"${a:x} == 10", allFine, true},
		{"${a:x}==10.00", allFine, true},
		{"${a:x} == '10.0'", allFine, false},
		{"${a:x} == '10'", allFine, true},
		{`${a:x} == "10"`, allFine, true},
		{"${a:x} == ${b:same}", allFine, true},
		{"${a:x} > ${b:y}", allFine, true},
		{"${a:x} > '9'", allFine, false}, // quoted: as texts
		{"${a:x} >= 10", allFine, true},
		{"${a:x} < 10", allFine, false},
		{"${a:x} <= 10", allFine, true},
		{"${a:x} != 10", allFine, false},
		{"${a:word} > 5", allFine, true}, // not a number: as texts
		{"${a:word} == 'foo'", allFine, true},
		{"'foo' == ${a:word}", allFine, true},
		{"${a:empty} == ''", allFine, true},
		{"${a:empty} == 0", allFine, false},
		{"${a:big} > ${b:big}", allFine, true}, // beyond a float64
		{"${a:exp} == 1000", allFine, true},
		{"${a:exp} < 1.5e+3", allFine, true},
		{"${a:minus} < 1", allFine, true},
		{"${a:minus} > -3", allFine, true},
		{"${a:minus} == -2.0", allFine, true},
		{"-0 == 0", allFine, true},
		{`${a:quote} == 'it\'s'`, allFine, true},
		{"${job one:my-param} == 1", allFine, true},
		{"(${a:x}) == (10)", allFine, true},

		{"${a:x} == 1 || ${b:y} == 9", allFine, true},
		{"${a:x} == 1 && ${b:y} == 9", allFine, false},
		{"${a:x} == 1 && ${b:y} == 1 || ${a:word} == 'foo'", allFine, true}, // && binds tighter
		{"${a:x} == 1 && (${b:y} == 1 || ${a:word} == 'foo')", allFine, false},
		{"!(${a:x} == 1)", allFine, true},
		{"!!(${a:x} == 1)", allFine, false},
		{"one_success && ${a:word} == 'foo'", Parents{Succeeded: 1, Failed: 1}, true},
		{"one_success || ${a:word} == 'foo'", Parents{Failed: 1}, true},
		{"${a:word} == 'foo'", Parents{Succeeded: 1, Failed: 1}, false}, // all_success beside it

		// An output that is not there makes all of it false.
		{"${a:none} == 'foo'", allFine, false},
		{"${a:none} != 'foo'", allFine, false},
		{"!(${a:none} == 'foo')", allFine, false},
		{"${a:none} == 'foo' || ${a:word} == 'foo'", allFine, false},
		{"all_done || ${c:none} == 'foo'", allFine, false},
	}
	for _, test := range tests {
		e, err := Parse(test.text)
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		got, why := e.Eval(test.parents, out)
		if got != test.want || got != (why == "") {
			t.Errorf("%s with %+v: got %v %q, want %v", test.text, test.parents, got, why, test.want)
		}
	}
}

func TestWhy(t *testing.T) {
	t.Parallel()
	out := outputs(map[string]string{"a:x": "z"})
	for text, want := range map[string]string{
		"${a:x} == 'y'": "condition ${a:x} == 'y' was false: a's x is 'z'",
		"${a:k} == 'y'": "condition ${a:k} == 'y' was false: a has no output k",
		"all_failed":    "all_failed was false: of 3 parents 3 succeeded and 0 failed",
		"one_success && ${a:x} == 'y' || ${a:x} == 'q'": "condition one_success && ${a:x} == 'y' || ${a:x} == 'q' was false: " +
			"of 3 parents 3 succeeded and 0 failed, a's x is 'z'",
		"1 > 2": "condition 1 > 2 was false",
		// The first part that was false is what counts, whatever comes after it.
		"all_failed && ${a:k} == 'y'":       "condition all_failed && ${a:k} == 'y' was false: all_failed was false: of 3 parents 3 succeeded and 0 failed",
		"one_success && ${a:k} == 'y'":      "condition one_success && ${a:k} == 'y' was false: a has no output k",
		"${a:x} == 'y' && ${a:k} == 'y'":    "condition ${a:x} == 'y' && ${a:k} == 'y' was false: a's x is 'z'",
		"${a:k} == 'y' && ${a:x} == 'y'":    "condition ${a:k} == 'y' && ${a:x} == 'y' was false: a has no output k",
		"${a:x} == 'z' && (1 > 2 || 2 > 3)": "condition ${a:x} == 'z' && (1 > 2 || 2 > 3) was false",
		"all_failed || ${a:k} == 'y'":       "condition all_failed || ${a:k} == 'y' was false: a has no output k",
	} {
		e, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, why := e.Eval(Parents{Succeeded: 3}, out); why != want {
			t.Errorf("%s\n got %s\nwant %s", text, why, want)
		}
	}
	e, err := Parse("${a:x} == 'z'")
	if err != nil {
		t.Fatal(err)
	}
	if _, why := e.Eval(Parents{Succeeded: 1, Failed: 2}, out); why != "all_success was false: of 3 parents 1 succeeded and 2 failed" {
		t.Error(why)
	}
}

func TestParseFaults(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		// The four faults of Azkaban's own input that a condition alone can show.
		"${jobA:param} != 'foo' || !() > 1": "empty operand",
		"($<jobA:param> == 'foo' || ${jobA:param.{param2}}) && !one_success && print(\"hello!\")": `"$<jobA:param>" is no expression`,
		"one_success && all_success || all_failed":                                                "more than one macro: one_success and all_success",
		"print(\"hello!\")": "is no expression",

		"${jobA:param.{param2}} == 1":    "is no expression",
		"${jobA:p":                       "has no closing brace",
		"${jobA} == 1":                   "an output is written ${job:param}",
		"${jobA:} == 1":                  "an output is written ${job:param}",
		"${:p} == 1":                     "an output is written ${job:param}",
		"${jobA:p:q} == 1":               "an output is written ${job:param}",
		"${a:x} == ":                     "empty operand: the condition ends",
		"&& ${a:x} == 1":                 "empty operand: && stands",
		"()":                             "empty operand: ) stands",
		"(${a:x} == 1":                   "not closed",
		"${a:x} == 1)":                   "not opened",
		"${a:x} == 'foo":                 "no closing quote",
		"${a:x} == 1 ${a:x} == 2":        "&& or || is missing",
		"${a:x}":                         "not compared with anything",
		"${a:x} && one_success":          "not compared with anything",
		"one_success && ${a:x}":          "not compared with anything",
		"(${a:x}) || one_success":        "not compared with anything",
		"1 < ${a:x} < 3":                 "join two comparisons by &&",
		"!${a:x} == 1":                   "put the comparison in parentheses",
		"one_success == 'true'":          "is true or false",
		"(${a:x} == 1) == (${a:x} == 1)": "is true or false",
		"${a:x} = 1":                     "is no expression",
		"${a:x} == foo":                  `"foo" is no expression`,
		"some_success":                   "is no expression",
		"${a:x} & ${a:y}":                "is no expression",
		strings.Repeat("(", 5000) + "one_success" + strings.Repeat(")", 5000): "nested more than",
		strings.Repeat("!", 5000) + "one_success":                             "nested more than",
		strings.Repeat(" ", maxLength+1):                                      "at most",
	} {
		_, err := Parse(text)
		var fault *Error
		if !errors.As(err, &fault) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100s: got %v, want %s", text, err, want)
		}
	}
}

func TestJobsAndMacro(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text     string
		jobs     string
		macro    Macro
		required bool
	}{
		{"", "", AllSuccess, true},
		{"${b:x} == 1 || ${a:y} == ${b:z}", "a b", AllSuccess, true},
		{"One_Failed && (${a:y} == 1)", "a", OneFailed, true},
		{"(${a:y} == 1 || ${a:y} == 2) && all_done", "a", AllDone, true},
		{"all_done || ${a:y} == 1", "a", AllDone, false},
		{"!one_failed", "", OneFailed, false},
	}
	for _, test := range tests {
		e, err := Parse(test.text)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(e.Jobs(), " "); got != test.jobs || e.Macro() != test.macro || e.Required() != test.required {
			t.Errorf("%s: jobs %s, macro %s, required %v", test.text, got, e.Macro(), e.Required())
		}
		if e.String() != test.text {
			t.Errorf("%s: is written %s", test.text, e)
		}
	}
}

// FuzzParse: no condition panics or hangs, and one that is accepted can be evaluated whatever the outputs are, says why it is false,
// and is the same condition in other spacing.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"", "one_success && ${jobA:props} == 'foo'", "${a:x} != 'foo' || !() > 1", "1.5e+3 <= ${a:x}", `"a\"b" == 'c'`,
		"!(all_failed || (${a:b} >= -2))", "(${a:x}) == ${a:x}", "print('x')",
	} {
		f.Add(text, "10", 1, 1)
	}
	f.Fuzz(func(t *testing.T, text, value string, succeeded, failed int) {
		e, err := Parse(text)
		if err != nil {
			var fault *Error
			if !errors.As(err, &fault) || fault.At < 0 || fault.At > len(text) || fault.Reason == "" {
				t.Fatalf("fault %#v", err)
			}
			return
		}
		parents := Parents{Succeeded: max(succeeded, 0) % 1000, Failed: max(failed, 0) % 1000}
		has := func(string, string) (string, bool) { return value, true }
		holds, why := e.Eval(parents, has)
		if holds != (why == "") {
			t.Fatalf("%q: %v %q", text, holds, why)
		}
		none, _ := e.Eval(parents, func(string, string) (string, bool) { return "", false })
		if none && len(e.Jobs()) > 0 {
			t.Fatalf("%q holds without its outputs", text)
		}
		spaced, err := Parse(" ( " + text + "\n ) ")
		if strings.TrimLeft(text, " \t\r\n") == "" {
			return
		}
		if err != nil {
			var fault *Error
			if errors.As(err, &fault) && (strings.Contains(fault.Reason, "nested") || strings.Contains(fault.Reason, "bytes")) {
				return
			}
			t.Fatalf("%q in parentheses: %v", text, err)
		}
		if again, _ := spaced.Eval(parents, has); again != holds {
			t.Fatalf("%q: %v, in parentheses %v", text, holds, again)
		}
	})
}

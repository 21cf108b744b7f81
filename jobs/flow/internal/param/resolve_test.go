package param

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
)

func one(values map[string]string) Scopes { return Scopes{{From: "test", Values: values}} }

func TestResolve(t *testing.T) {
	t.Parallel()
	got, err := Resolve(Scopes{
		{Values: map[string]string{"greeting": "hello ${who}", "who": "nobody", "unused": "${who}!"}},
		{Values: map[string]string{"who": "world", "a.b_1": "x", "c": "${a.b_1}${a.b_1}"}},
		{Values: map[string]string{
			"dash": "${my-param} ${} ${ who} ${who", "dollar": "$who $$ {who} $", "nested": "${${who}}", "twice": "$${who}",
			"sum": "$(1+10)", "product": "$(1+10)*2", "two": "$(${n}*2) and $(${n} - 1)", "n": "21", "inner": "$($(1+2)*(3))",
			"negative": "$(-3 + 1)", "quotient": "$(7/2) $(7%3) $(7.0/2) $(1.5*2)", "date": "echo $(date +%Y-%m-%d) $(1+1)", "outer": "$(ls $(1+1) (x)) $(2*(3)) :-) (", "name": "$(foo)",
			"late": "$(1+${two.words})", "two.words": "1*2", "empty": "",
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"greeting": "hello world", "who": "world", "unused": "world!", "a.b_1": "x", "c": "xx",
		"dash": "${my-param} ${} ${ who} ${who", "dollar": "$who $$ {who} $", "nested": "${world}", "twice": "$world",
		"sum": "11", "product": "11*2", "two": "42 and 20", "n": "21", "inner": "9",
		"negative": "-2", "quotient": "3 1 3.5 3", "date": "echo $(date +%Y-%m-%d) 2", "outer": "$(ls 2 (x)) 6 :-) (", "name": "$(foo)",
		"late": "3", "two.words": "1*2", "empty": "",
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s: got %q, want %q", name, got[name], value)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %d parameters, want %d", len(got), len(want))
	}
}

func TestResolveFaults(t *testing.T) {
	t.Parallel()
	for want, values := range map[string]map[string]string{
		"parameter nowhere is not defined (a -> b -> nowhere)":        {"a": "${b}", "b": "x${nowhere}"},
		"in a circle (a -> a)":                                        {"a": "1${a}"},
		"in a circle (b -> c -> b)":                                   {"a": "${b}", "b": "${c}", "c": "${b}"},
		"parameter a: $(1+(2) has no closing parenthesis":             {"a": "$(1+(2)"},
		"parameter a: $(1+): a number is missing":                     {"a": "$(1+)"},
		"parameter a: $(): a number is missing":                       {"a": "$()"},
		"parameter a: $(1 2): \"2\" is not expected":                  {"a": "$(1 2)"},
		"parameter a: $((1 2)): an operator is missing":               {"a": "$((1 2))"},
		"parameter a: $(1/0): division by zero":                       {"a": "$(1/0)"},
		"parameter a: $(1.0%0): division by zero":                     {"a": "$(1.0%0)"},
		"parameter a: $(9223372036854775807+1): the result is too la": {"a": "$(9223372036854775807+1)"},
		"$(4611686018427387904*2): the result is too large":           {"a": "$(4611686018427387904*2)"},
		"$(-9223372036854775807-2): the result is too large":          {"a": "$(-9223372036854775807-2)"},
		"$((-9223372036854775807-1)/-1): the result is too large":     {"a": "$((-9223372036854775807-1)/-1)"},
		"$(-1*(-9223372036854775807-1)): the result is too large":     {"a": "$(-1*(-9223372036854775807-1))"},
		"$((-9223372036854775807-1)*-1): the result is too large":     {"a": "$((-9223372036854775807-1)*-1)"},
		"is not a number that can be calculated with":                 {"a": "$(1.2.3)"},
		"nested more than 100 deep":                                   {"a": "$(" + strings.Repeat("(", 200) + "1" + strings.Repeat(")", 201)},
	} {
		_, err := Resolve(one(values))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %s", values, err, want)
		}
	}
	_, err := Resolve(one(map[string]string{"a": "${x}", "b": "${b}", "c": "fine"}))
	var undefined *UndefinedError
	var cycle *CycleError
	if !errors.As(err, &undefined) || undefined.Name != "x" || !errors.As(err, &cycle) {
		t.Errorf("both faults at once: %v", err)
	}
	_, err = Resolve(one(map[string]string{"a": "${b}", "b": "${c}", "c": "${a}", "d": "${b}", "e": "${f}", "f": "${e} ${a}"}))
	if text := fmt.Sprint(err); strings.Count(text, "in a circle") != 2 || !strings.Contains(text, "(a -> b -> c -> a)") || !strings.Contains(text, "(e -> f -> e)") {
		t.Errorf("two cycles and who leads there: %v", err)
	}
}

// TestResolveBounded: texts that double themselves end in an error, quickly, as do chains without end.
func TestResolveBounded(t *testing.T) {
	t.Parallel()
	doubling := map[string]string{"p0": "xx"}
	for i := range 60 {
		doubling[fmt.Sprintf("p%d", i+1)] = fmt.Sprintf("${p%d}${p%d}", i, i)
	}
	if _, err := Resolve(one(doubling)); err == nil || !strings.Contains(err.Error(), "more than 1048576 bytes") {
		t.Errorf("doubling: %v", err)
	}
	// Nothing to put in, but exponentially many ways there.
	empty := map[string]string{"p0": ""}
	for i := range 900 {
		empty[fmt.Sprintf("p%d", i+1)] = fmt.Sprintf("${p%d}${p%d}", i, i)
	}
	if _, err := Resolve(one(empty)); err != nil {
		t.Errorf("doubling of nothing: %v", err)
	}
	many := map[string]string{"big": strings.Repeat("x", MaxValue)}
	for i := range 20 {
		many[fmt.Sprintf("p%d", i)] = "${big}"
	}
	if _, err := Resolve(one(many)); err == nil || !strings.Contains(err.Error(), "bytes together") {
		t.Errorf("many: %v", err)
	}
	chain := map[string]string{"p0": "x"}
	for i := range 2 * maxChain {
		chain[fmt.Sprintf("p%d", i+1)] = fmt.Sprintf("${p%d}", i)
	}
	first := map[string]string{"a": fmt.Sprintf("${p%d}", 2*maxChain)}
	maps.Copy(first, chain)
	if _, err := Resolve(one(first)); err == nil || !strings.Contains(err.Error(), "leads through more than") {
		t.Errorf("chain: %v", err)
	}
}

// TestCalculateDeep: a great many $( in each other take one pass.
func TestCalculateDeep(t *testing.T) {
	t.Parallel()
	const n = 200_000
	text := strings.Repeat("$(a", n) + strings.Repeat(")", n)
	if got, err := calculate(text); err != nil || got != text {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
	got, err := calculate(strings.Repeat("$(", n) + "1" + strings.Repeat(")", n))
	if err != nil || got != "1" {
		t.Errorf("got %.20q, %v", got, err)
	}
}

func TestParseOutputs(t *testing.T) {
	t.Parallel()
	got, err := ParseOutputs([]byte(` {"s":"a\"b","n":1.50,"t":true,"list":[ "a", 1],"o":{"k":"v"},"none":null} `))
	want := map[string]string{"s": `a"b`, "n": "1.50", "t": "true", "list": `["a",1]`, "o": `{"k":"v"}`}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{"", "[]", "1", `{"a":}`, `{"a":1} x`, `{"a":1}{}`, "null x"} {
		if _, err := ParseOutputs([]byte(bad)); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func FuzzResolve(f *testing.F) {
	for _, text := range []string{"${b}", "$(1+${b})", "${c}${c}", "$($(1)+(2))", "${my-param}", "$(date)", "$(1/0)", "${a", "$((((", "$(1.5%2)"} {
		f.Add(text, "x${c}", "7")
	}
	f.Fuzz(func(t *testing.T, a, b, c string) {
		values := map[string]string{"a": a, "b": b, "c": c}
		got, err := Resolve(one(values))
		if err != nil {
			return
		}
		for name, value := range got {
			if len(value) > MaxValue {
				t.Fatalf("%s has %d bytes", name, len(value))
			}
			if !strings.Contains(values[name], "$") && value != values[name] {
				t.Fatalf("%s was %q and is %q", name, values[name], value)
			}
		}
	})
}

// Data is put in as it is, with all that it looks like; around it everything is resolved.
func TestResolveData(t *testing.T) {
	t.Parallel()
	odd := []string{"$(1", "${nope}", "$(1+1)", "$(1/0)", ")", "$", "7", "${n}"}
	for _, item := range odd {
		got, err := Resolve(Scopes{
			{Values: map[string]string{"n": "3", "twice": "is resolved"}},
			{Values: map[string]string{"item": item, "list": item + item}, Data: true},
			{Values: map[string]string{"text": "$(${n}*2) ${item}$(1+1)", "again": "${text} ${item}", "dollar": "$${item}"}},
		})
		want := map[string]string{
			"n": "3", "twice": "is resolved", "item": item, "list": item + item,
			"text": "6 " + item + "2", "again": "6 " + item + "2 " + item, "dollar": "$" + item,
		}
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("%q: %v, %v", item, got, err)
		}
	}
	got, err := Resolve(Scopes{
		{Values: map[string]string{"item": "41", "stronger": "${item}"}, Data: true},
		{Values: map[string]string{"sum": "$(${item}+1)", "stronger": "${item}"}},
	})
	if err != nil || got["sum"] != "42" || got["stronger"] != "41" {
		t.Errorf("%v, %v", got, err)
	}
	_, err = Resolve(Scopes{{Values: map[string]string{"item": "$(x)"}, Data: true}, {Values: map[string]string{"a": "$(1+ ${item}"}}})
	if want := "parameter a: $(1+ $(x) has no closing parenthesis"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// Behind a for_each without items what nobody defines is an empty list.
func TestResolveEmpty(t *testing.T) {
	t.Parallel()
	got, err := Resolve(Scopes{{Values: map[string]string{"a": "1"}}, {Empty: true}, {Values: map[string]string{"b": "${a} ${sizes}"}}})
	if err != nil || !maps.Equal(got, map[string]string{"a": "1", "b": "1 []"}) {
		t.Errorf("%v, %v", got, err)
	}
}

package scrub_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/peltonq/pelton/jobs/flow/internal/scrub"
)

const secret = "pa/ss+wörd &\"x"

func set(values ...string) *scrub.Set {
	all := map[string][]byte{}
	for i, value := range values {
		all[fmt.Sprint(i)] = []byte(value)
	}
	return scrub.New(all)
}

func TestForms(t *testing.T) {
	t.Parallel()
	encode := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	s := set(secret)
	for text, want := range map[string]string{
		"":                                       "",
		"a pa/ss b":                              "a pa/ss b",
		"a " + secret + secret + " b":            "a ****** b",
		"q=" + url.QueryEscape(secret):           "q=***",
		"/" + url.PathEscape(secret) + "/":       "/***/",
		strings.ToLower(url.QueryEscape(secret)): "***",
		encode(map[string]string{"a": secret}):   `{"a":"***"}`,
		base64.StdEncoding.EncodeToString([]byte(secret)):       "***",
		base64.RawURLEncoding.EncodeToString([]byte(secret)):    "***",
		strings.ReplaceAll(url.QueryEscape(secret), "+", "%20"): "***",
		// what json.dumps of Python, json_encode of PHP and JsonSerializer of .NET make of it
		`"pa/ss+w\u00f6rd &\"x"`:               `"***"`,
		`"pa\/ss+w\u00f6rd &\"x"`:              `"***"`,
		`"pa\/ss+wörd &\"x"`:                   `"***"`,
		`"pa/ss+w\u00F6rd &\"x"`:               `"***"`,
		`"pa/ss\u002Bw\u00F6rd \u0026\u0022x"`: `"***"`,
	} {
		if got := s.Text(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	for before := range 5 {
		whole := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("u", before) + secret + "tail"))
		got := s.Text(whole)
		if !strings.Contains(got, "***") || len(got) > before*2+4+8+8 {
			t.Errorf("behind %d bytes: %s became %s", before, whole, got)
		}
	}
}

// A secret with all signs that some library escapes, as libraries of JSON write it.
func TestJSONOfLibraries(t *testing.T) {
	t.Parallel()
	s := set("<ö>/&'=+`\"\\\U0001f600")
	for library, text := range map[string]string{
		"JavaScript":           `<ö>/&'=+` + "`" + `\"\\😀`,
		"Go, Ruby on Rails":    `\u003cö\u003e/\u0026'=+` + "`" + `\"\\😀`,
		"Python":               `<\u00f6>/&'=+` + "`" + `\"\\\ud83d\ude00`,
		"PHP":                  `<\u00f6>\/&'=+` + "`" + `\"\\\ud83d\ude00`,
		"PHP, no Unicode":      `<ö>\/&'=+` + "`" + `\"\\😀`,
		"PHP, tags, amp, apos": `\u003C\u00f6\u003E\/\u0026\u0027=+` + "`" + `\"\\\ud83d\ude00`,
		"PHP, quotes too":      `\u003C\u00f6\u003E\/\u0026\u0027=+` + "`" + `\u0022\\\ud83d\ude00`,
		"Gson":                 `\u003cö\u003e/\u0026\u0027\u003d+` + "`" + `\"\\😀`,
		"Jackson, no Unicode":  `<\u00F6>/&'=+` + "`" + `\"\\\uD83D\uDE00`,
		"System.Text.Json":     `\u003C\u00F6\u003E/\u0026\u0027=\u002B\u0060\u0022\\\uD83D\uDE00`,
	} {
		if got := s.Text(text); got != "***" {
			t.Errorf("%s: %s became %s", library, text, got)
		}
	}
}

// Of several lines each longer one is a form too; of two values that overlap nothing is left.
func TestLinesAndOverlaps(t *testing.T) {
	t.Parallel()
	key := "-----BEGIN-----\nMIIEvQIBADANBg\nabc\n-----END-----"
	if got := set(key).Text("1: MIIEvQIBADANBg\n2: abc\n"); got != "1: ***\n2: abc\n" {
		t.Errorf("got %q", got)
	}
	if got := set("abcdef", "defghi", "abcdefgh123").Text("xabcdefghiy abcdefgh12 abcdefgh123"); got != "x***y ***gh12 ***" {
		t.Errorf("got %q", got)
	}
	if got := set("aaaa").Text("baaaaaaaaab"); got != "b***b" {
		t.Errorf("got %q", got)
	}
}

// However a text is cut into writes, it comes out as if it were one.
func TestAnySplitIsTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		letter := rapid.SampledFrom([]string{"a", "b", "ab", "aab", "abab", "c", "\n"})
		word := func(name string, least int) string {
			return strings.Join(rapid.SliceOfN(letter, least, 12).Draw(t, name), "")
		}
		s := set(word("first", 4), word("second", 4))
		text := word("text", 0) + word("more", 0) + word("most", 0)
		var whole, parts bytes.Buffer
		w := s.Writer(&whole)
		_, _ = w.Write([]byte(text))
		_ = w.Close()
		w = s.Writer(&parts)
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			_, _ = w.Write([]byte(rest[:n]))
			if s.In(parts.String()) {
				t.Fatalf("%q shows a value", parts.String())
			}
			rest = rest[n:]
		}
		_ = w.Close()
		if whole.String() != parts.String() || s.In(whole.String()) {
			t.Fatalf("%q became %q, and in parts %q", text, whole.String(), parts.String())
		}
	})
}

// Only what may be the beginning of a value waits.
func TestOthersAreNotHeldBack(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := set("secret").Writer(&out)
	for _, write := range []struct{ text, shown string }{{"a line\n", "a line\n"}, {"then se", "a line\nthen "}, {"cr", "a line\nthen "}, {"eam", "a line\nthen secream"}} {
		if n, err := w.Write([]byte(write.text)); n != len(write.text) || err != nil || out.String() != write.shown {
			t.Errorf("after %q: %q, %d, %v", write.text, out.String(), n, err)
		}
	}
}

func TestErrorsAndTheEmptySet(t *testing.T) {
	t.Parallel()
	cause := errors.New("the cause")
	err := set(secret).Error(fmt.Errorf("with %s: %w", secret, cause))
	if err.Error() != "with ***: the cause" || !errors.Is(err, cause) {
		t.Errorf("%v", err)
	}
	if got := set(secret).Error(cause); got != cause { //nolint:errorlint // the very same
		t.Errorf("%v", got)
	}
	var none *scrub.Set
	var out bytes.Buffer
	w := none.Writer(&out)
	if _, err := w.Write([]byte("text")); err != nil || w.Close() != nil || out.String() != "text" || none.In("text") || none.Error(cause) != cause { //nolint:errorlint // the very same
		t.Errorf("the empty set: %q, %v", out.String(), err)
	}
}

func BenchmarkWriter(b *testing.B) {
	line := []byte(strings.Repeat("2026-11-29 21:20:49 INFO some module says that it has done something\n", 400))
	w := set(secret, "another secret", "a third one").Writer(nothing{})
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		_, _ = w.Write(line)
	}
}

type nothing struct{}

func (nothing) Write(p []byte) (int, error) { return len(p), nil }

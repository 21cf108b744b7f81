package nodecmd

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOutputsAreTexts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]map[string]string{
		"":          nil,
		" \n":       nil,
		"{}":        {},
		`{"a":"1"}`: {"a": "1"},
		`{"a":"x \"y\" é😀\n","b":1.50,"c":true,"d":null,"e":12345678901234567890,"f":1e400}`: {
			"a": "x \"y\" é😀\n", "b": "1.50", "c": "true", "e": "12345678901234567890", "f": "1e400",
		},
		"\n{ \"list\" : [ 1, \"two\" , {\"a\" : \"b c\"} ],\n \"o\":{ } }\n": {"list": `[1,"two",{"a":"b c"}]`, "o": "{}"},
		`{"a":1,"a":"last"}`: {"a": "last"},
	} {
		if got, err := parseOutputs([]byte(text)); err != nil || !maps.Equal(got, want) {
			t.Errorf("%q: got %q, want %q: %v", text, got, want, err)
		}
	}
}

func TestBadOutputs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"[1]":                  "want a JSON object",
		"null":                 "want a JSON object",
		`"a"`:                  "want a JSON object",
		"{\"a\": 1,\n\n oops}": "line 3: invalid character",
		`{"a": 1} {"b": 2}`:    "line 1: invalid character '{' after top-level value",
		`{"a": 1`:              "unexpected end of JSON",
		"key=value":            "line 1: invalid character 'k'",
		"{\"a\": \"\xff\"}":    "not UTF-8",
	} {
		if got, err := parseOutputs([]byte(text)); !errors.Is(err, ErrBadOutputs) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %q, %v, want an error with %q", text, got, err, want)
		}
	}
}

func TestOutputsFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "outputs")
	if got, err := readOutputs(path); got != nil || err != nil {
		t.Errorf("no file: %v, %v", got, err)
	}
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"a":"` + strings.Repeat("x", MaxOutputs-8) + `"}`)
	if got, err := readOutputs(path); len(got["a"]) != MaxOutputs-8 || err != nil {
		t.Errorf("the largest file: %d, %v", len(got["a"]), err)
	}
	write(`{"a":"` + strings.Repeat("x", MaxOutputs-7) + `"}`)
	if _, err := readOutputs(path); !errors.Is(err, ErrBadOutputs) || !strings.Contains(err.Error(), "more than 1048576 bytes") {
		t.Errorf("one byte more: %v", err)
	}
	if _, err := readOutputs(filepath.Dir(path)); !errors.Is(err, ErrBadOutputs) {
		t.Errorf("a directory: %v", err)
	}
}

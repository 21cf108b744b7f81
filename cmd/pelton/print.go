package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// document prints one value as indented JSON if asked for a document, for people otherwise.
func (a *app) document(value any, people func(w io.Writer)) error {
	if !a.json {
		people(a.stdout)
		return nil
	}
	encoder := json.NewEncoder(a.stdout)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// list prints values: JSON lines, or a table with a head. row gives the cells.
func list[T any](a *app, head string, values []T, row func(T) []any) error {
	if a.json {
		encoder := json.NewEncoder(a.stdout)
		encoder.SetEscapeHTML(false)
		for _, v := range values {
			if err := encoder.Encode(v); err != nil {
				return err
			}
		}
		return nil
	}
	if len(values) == 0 {
		fmt.Fprintln(a.stderr, "pelton: none")
		return nil
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.ReplaceAll(head, " ", "\t"))
	for _, v := range values {
		cells := row(v)
		for i, c := range cells {
			if i > 0 {
				fmt.Fprint(w, "\t")
			}
			fmt.Fprint(w, oneLine(fmt.Sprint(c)))
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

// oneLine makes a text fit for a cell.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
	if s == "" {
		return "-"
	}
	const most = 100
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return s
}

// moment is a time for people and programs: RFC 3339 in UTC.
func moment(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func optionalMoment(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return moment(*t)
}

package api

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/peltonq/pelton/jobs"
)

// What comes in as a cursor is refused, or is one that the list could have made.
func FuzzCursor(f *testing.F) {
	f.Add(cursorTo("dead", deadPlace{time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC), 7}))
	f.Add(cursorTo("jobs by id, false", "eyJpZCI6N30="))
	f.Add(cursorTo("audit", 7))
	f.Add("")
	f.Add("eyJsIjoiZGVhZCJ9")
	f.Add(strings.Repeat("A", 1000))
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := positionOf[deadPlace]("dead", text); err == nil && p != nil {
			again, err := positionOf[deadPlace]("dead", cursorTo("dead", *p))
			if err != nil || !again.DiedAt.Equal(p.DiedAt) || again.JobID != p.JobID {
				t.Errorf("%q: %+v, then %+v: %v", text, p, again, err)
			}
		}
		if p, err := positionOf[string]("jobs by id, false", text); err == nil && p != nil {
			var cursor jobs.JobListCursor
			if cursor.UnmarshalText([]byte(*p)) == nil {
				if _, err := cursor.MarshalText(); err != nil {
					t.Error(err)
				}
			}
		}
		if p, err := positionOf[int64]("audit", text); err == nil && p != nil {
			if again, err := positionOf[int64]("audit", cursorTo("audit", *p)); err != nil || *again != *p {
				t.Errorf("%q: %d", text, *p)
			}
		}
	})
}

// A cursor does not fit another list, and nothing is read out of what is behind it.
func TestCursorsOfOtherLists(t *testing.T) {
	t.Parallel()
	cursor := cursorTo("audit", 7)
	if p, err := positionOf[int64]("audit", cursor); err != nil || *p != 7 {
		t.Errorf("%v %v", p, err)
	}
	for _, text := range []string{cursorTo("executors", 7), cursor + "A", cursor + "=", " " + cursor, cursorTo("audit", "x"), cursorTo("audit", nil), "e30"} {
		if p, err := positionOf[int64]("audit", text); err == nil {
			t.Errorf("%q is a cursor: %v", text, *p)
		}
	}
	cursor = cursorTo("flows", flowPlace{"sales", "etl"})
	if p, err := positionOf[flowPlace]("flows", cursor); err != nil || *p != (flowPlace{"sales", "etl"}) {
		t.Errorf("%v %v", p, err)
	}
	for _, text := range []string{cursorTo("flows", "sales"), cursorTo("flows", 7), cursorTo("versions", flowPlace{"sales", "etl"}), cursorTo("flows", map[string]int{"p": 1})} {
		if p, err := positionOf[flowPlace]("flows", text); err == nil {
			t.Errorf("%q is a cursor of flows: %v", text, *p)
		}
	}
	if p, err := positionOf[int32]("versions", cursorTo("versions", 7)); err != nil || *p != 7 {
		t.Errorf("%v %v", p, err)
	}
	for _, text := range []string{cursor, cursorTo("versions", int64(1)<<40), cursorTo("versions", "7"), cursorTo("runs", 7)} {
		if p, err := positionOf[int32]("versions", text); err == nil {
			t.Errorf("%q is a cursor of versions: %v", text, *p)
		}
	}
}

func TestRanges(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]any{
		"bytes=0-4": span{0, 5}, "bytes=5-": span{5, 5}, "bytes=-3": span{7, 3}, "bytes=-30": span{0, 10}, "bytes=9-99": span{9, 1},
		"bytes=10-": nil, "bytes=-0": nil, "bytes=99999999999999999999-": "none", "bytes=-": "none", "bytes=a-b": "none", "": "none", "bytes=4-3": "none",
		"bytes=0-1,3-4": "none", "lines=0-1": "none",
	} {
		var got any = "none"
		if w, ok := parseRange(header); ok {
			got = nil
			if part, some := w.of(10); some {
				got = part
			}
		}
		if got != want {
			a, _ := json.Marshal(header)
			t.Errorf("%s: %v, want %v", a, got, want)
		}
	}
}

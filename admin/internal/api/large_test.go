package api_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/admin/access"
)

// A page of a list whose items are large ends early, and the cursors lead to all of them.
func TestLargeItemsMakeShortPages(t *testing.T) {
	t.Parallel()
	s := start(t)
	const count, each = 50, 200 << 10
	large := map[string]string{"text": strings.Repeat("x", each)}
	var many []river.InsertManyParams
	for range count {
		many = append(many, river.InsertManyParams{Args: rawArgs{"big", large}})
	}
	if _, err := s.jobs.InsertMany(t.Context(), many); err != nil {
		t.Fatal(err)
	}
	_, err := s.pool.Exec(t.Context(), `
		INSERT INTO pelton.job_dead (job_id, created_at, priority, max_attempts, attempt, reason, kind, queue, args, attempts)
		SELECT j.id, now(), 1, 1, 1, 'exhausted', j.kind, j.queue, j.args, '[]' FROM pelton.job j`)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.pool.Exec(t.Context(), `
		INSERT INTO pelton.audit (action, target, after) SELECT 'large', i::text, json_build_object('text', repeat('x', $2))
		FROM generate_series(1, $1) i`, count, each)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 25 {
		name := "large" + string(rune('a'+i))
		do[json.RawMessage](s, access.Admin, 200, "PUT", "/api/v1/schedules/"+name, map[string]any{
			"name": name, "cron": "0 4 * * *", "job": map[string]any{"kind": "noop", "args": large},
		})
	}
	for path, want := range map[string]int{
		"/api/v1/jobs?kind=big&limit=1000":           count,
		"/api/v1/jobs?kind=big&limit=1000&desc=true": count,
		"/api/v1/jobs?order=scheduled_at&limit=1000": count,
		"/api/v1/dead?limit=1000":                    count,
		"/api/v1/audit?action=large&limit=1000":      count,
		"/api/v1/schedules?prefix=large&limit=1000":  25,
		"/api/v1/jobs?kind=big&limit=3":              count,
		"/api/v1/dead?limit=3":                       count,
	} {
		seen, pages := map[string]bool{}, 0
		for cursor := "start"; cursor != "" && pages <= count; pages++ {
			to := path
			if cursor != "start" {
				to += "&cursor=" + url.QueryEscape(cursor)
			}
			r := s.ask(s.tokens[access.Viewer], "GET", to, nil)
			if len(r.body) > 6<<20 {
				t.Errorf("%s: a page of %d MiB", path, len(r.body)>>20)
			}
			var page struct {
				Items []struct {
					ID    json.Number `json:"id"`
					JobID json.Number `json:"job_id"`
					Name  string      `json:"name"`
				}
				NextCursor string `json:"next_cursor"`
			}
			if err := json.Unmarshal(r.body, &page); err != nil || r.status != 200 {
				t.Fatalf("%s: %d, %v: %.300s", to, r.status, err, r.body)
			}
			if len(page.Items) == 0 && page.NextCursor != "" {
				t.Errorf("%s: an empty page in the middle", to)
			}
			for _, i := range page.Items {
				key := i.ID.String() + i.JobID.String() + i.Name
				if seen[key] {
					t.Errorf("%s: %s twice", path, key)
				}
				seen[key] = true
			}
			cursor = page.NextCursor
		}
		if len(seen) != want {
			t.Errorf("%s: %d items, want %d", path, len(seen), want)
		}
	}
}

// rawArgs are args of a kind.
type rawArgs struct {
	kind string
	args any
}

func (a rawArgs) Kind() string { return a.kind }

// MarshalJSON implements json.Marshaler.
func (a rawArgs) MarshalJSON() ([]byte, error) { return json.Marshal(a.args) }

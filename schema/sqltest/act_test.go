package sqltest

import (
	"strconv"
	"strings"
	"testing"
)

// Each example acts on the seeded database, without a Go client.
func TestActsOfTheManual(t *testing.T) {
	t.Parallel()
	pool := seeded(t)
	_, part, found := strings.Cut(readPage(t, "sql.md"), "\n## Act from SQL\n")
	examples := sections("## Act from SQL\n"+part, "## ")
	if !found || len(examples) != 1 || len(examples[0].queries) < 7 {
		t.Fatalf("docs/sql.md has examples %q", examples)
	}
	id := value[int64](t, pool, `SELECT pelton.enqueue('report')`)
	for _, query := range examples[0].queries {
		query = strings.ReplaceAll(query, ":job_id", strconv.FormatInt(id, 10))
		if _, rows := ask(t, pool, query, query); len(rows) == 0 {
			t.Errorf("nothing came from %s", query)
		}
	}
	actions := strings.Join(values[string](t, pool, `SELECT DISTINCT action FROM pelton.audit WHERE at > now() - interval '1 minute'
		ORDER BY action`), " ")
	if want := "dead.redrive job.cancel job.delete job.reschedule job.retry job.update queue.resume"; actions != want {
		t.Errorf("the examples wrote %s into audit; want %s", actions, want)
	}
	for _, function := range []string{"cancel", "retry", "reschedule", "change", "delete_job", "redrive", "discard", "job_rows"} {
		if !strings.Contains(part, "| `"+function+"` |") {
			t.Errorf("docs/sql.md does not explain %s", function)
		}
	}
}

package sqltest

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/schema/schematest"
)

// question is one of docs/sql.md.
type question struct {
	title   string
	queries []string
}

// questions reads the headings of the third level, with the SQL below each.
func questions(page string) []question {
	page, _, _ = strings.Cut(page, "\n## Enqueue from SQL\n")
	return sections(page, "### ")
}

// sections reads the headings that begin with a prefix, with the SQL below each.
func sections(page, prefix string) []question {
	var all []question
	inQuery := false
	for line := range strings.Lines(page) {
		heading, isHeading := strings.CutPrefix(line, prefix)
		switch {
		case inQuery && strings.HasPrefix(line, "```"):
			inQuery = false
		case inQuery:
			last := &all[len(all)-1]
			last.queries[len(last.queries)-1] += line
		case isHeading:
			all = append(all, question{title: strings.TrimSpace(heading)})
		case strings.HasPrefix(line, "```sql") && len(all) > 0:
			inQuery = true
			last := &all[len(all)-1]
			last.queries = append(last.queries, "")
		}
	}
	return all
}

// answer is what a question must give on the seeded database.
type answer struct {
	columns string // all, in order
	rows    int    // at least; 0: none may come
	holds   string // text that must be in some row
}

var answers = map[string]answer{
	"What is where right now?":                               {"state jobs oldest", 8, "retryable"},
	"How does each queue stand?":                             {"queue available running scheduled retryable pending dead oldest_ready_age paused_at executors", 5, "archive"},
	"What waits, and for whom?":                              {"waits_for queue state jobs longest example", 6, "somebody to resume queue mail"},
	"Which jobs should have started by now, and did not?":    {"job_id kind queue state waits_for late", 10, "its time"},
	"What runs longest right now?":                           {"job_id kind queue attempt started_at took executor_name host", 3, "worker-a"},
	"What starts in the next two hours?":                     {"job_id kind queue state due in_time", 3, "retryable"},
	"Which queues are paused, since when, and by whom?":      {"queue paused_at paused_for who", 1, "ann as "},
	"Who works, who is silent, and what do they hold?":       {"id name host pid state last_sign leased slots queues", 4, "dead"},
	"Does somebody do the scheduler's duties?":               {"duty state done_at done_by failing_since failed_by error", 6, "keeper"},
	"Is any job lost?":                                       {"job_id created_at kind queue last_run last_outcome", 0, ""},
	"What ran last night, and for how long?":                 {"kind queue runs total mean longest not_completed", 4, "command"},
	"What failed in the last day, and why?":                  {"ended_at job_id kind queue attempt outcome error next_due executor_name", 10, "panic: index out of range [3] with length 3"},
	"Which errors are most frequent?":                        {"kind message times jobs last example", 4, "dial tcp N.N.N.N:N: connection refused"},
	"What happened to one job, from the enqueue to its end?": {"at run event detail who", 9, "snoozed"},
	"What was asked of one job, and what became of it?": {"state since queue priority attempt max_attempts created_at started_at ended_at took " +
		"last_error args output metadata tags", 1, "completed"},
	"What did one job print?":                                          {"at run stream text", 3, "line 0000001"},
	"What did one executor run in the last day?":                       {"job_id run kind outcome started_at took error", 10, "running"},
	"What was running between two times?":                              {"job_id run kind queue started_at ended_at outcome executor_name", 2, "completed"},
	"Which jobs were lost with their process, and did they run again?": {"job_id kind run found_at executor_name state runs", 2, "worker-c"},
	"Which dead letters are there, by error?":                          {"kind queue reason error_line letters first last example", 1, "exhausted"},
	"Which kinds are slowest?":                                         {"kind runs half p95 longest", 4, "thumbnail"},
	"How long do jobs wait before they start, by queue?":               {"queue priority runs seconds_p50_p95_p99 longest", 3, "etl"},
	"How many runs end per hour, and how?":                             {"hour completed errored discarded lost runs", 23, ""},
	"How often are jobs retried, by kind?":                             {"kind jobs retries attempts_until_done percent_of_jobs", 4, "invoice"},
	"What does the database gain per day?":                             {"day jobs runs log_chunks log", 5, "bytes"},
	"Which partitions are there, and how large?":                       {"table_name partition from_time to_time rows size", 5, "job_attempt_rest"},
	"Who changed what in the last week?":                               {"at who action target before after", 4, "job.retry"},
	"Which jobs carry a tag?":                                          {"id kind state since tags", 10, "nightly"},
	"Which jobs were for one customer?":                                {"id kind created_at state args", 5, "completed"},
	"Which unique keys are held, and by which job?":                    {"key job_id kind queue state", 1, "available"},
	"Which jobs had the same unique key?":                              {"key kind jobs ids states", 1, "cancelled"},
	"Which jobs did a person change since they were enqueued?": {"id kind queue queue_now priority priority_now max_attempts max_attempts_now " +
		"scheduled_at due_now changed_at who", 1, "bob as "},
	"Which flows failed last night, and at which node?":            {"run project flow status ended_at node node_status reason job_id", 1, "exited with code 3"},
	"Which runs of flows go on, and how far are they?":             {"run project flow status age ended nodes under_way", 2, "1|3|load"},
	"What does a run of a flow wait for?":                          {"node status held job_id job_state job_since waits_for", 2, "report|READY|||||load"},
	"Which nodes of flows are slowest?":                            {"project flow node runs mean longest waited", 3, "report"},
	"Who killed, retried or changed which run?":                    {"at who action run project flow was nodes is_now", 1, "flow.kill|3|sales|nightly|RUNNING||KILLED"},
	"How many runs of flows end per day, and how?":                 {"day project flow runs succeeded failed killed mean longest", 3, "nightly"},
	"Which ticks did not run since yesterday, and why?":            {"name at outcome reason note decided_at", 2, "|skipped|overlap|"},
	"Which schedules fire next?":                                   {"name owner next_at looked_at waiting failures", 1, "sales/nightly"},
	"Which schedules are paused, since when, and by whom?":         {"name owner paused_at paused_for paused_why paused_by", 1, "|person|os:ann|"},
	"What became of each schedule's ticks since yesterday?":        {"name fired skipped failed last_fired", 1, "sales/nightly|2|"},
	"Which schedules should have been fired by now, and were not?": {"name owner needs_owner next_at late failures", 1, "shop/digest|shop|t|"},
	"How late were ticks fired?":                                   {"name ticks mean latest", 1, "sales/nightly|2|00:00:01"},
	"Which jobs did a schedule start, and how did they end?":       {"tick source job_id state since", 2, "completed"},
	"How far are backfills?":                                       {"id name from_at to_at status total started left_out succeeded failed created_by", 1, "running|10|4|1|2|0"},
	"Which versions of projects were pushed, and were they run?":   {"project version pushed_at pushed_by format files size flows runs last_run", 2, "sales|1|"},
}

// theJob chooses the job that is asked about where the page says :job_id.
var theJob = map[string]string{
	"What happened to one job, from the enqueue to its end?": `SELECT job_id FROM pelton.job_attempt WHERE outcome = 'moved'`,
	"What was asked of one job, and what became of it?":      `SELECT max(job_id) FROM pelton.job_attempt WHERE outcome = 'completed'`,
	"What did one job print?":                                `SELECT max(job_id) FROM pelton.job_log`,
}

func readPage(t *testing.T, name string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

func TestQuestionsOfTheManual(t *testing.T) {
	t.Parallel()
	pool := seeded(t)
	asked := map[string]bool{}
	for _, q := range questions(readPage(t, "sql.md")) {
		asked[q.title] = true
		want, known := answers[q.title]
		if !known {
			t.Errorf("%q has no answer in this test", q.title)
			continue
		}
		if len(q.queries) != 1 || strings.TrimSpace(q.queries[0]) == "" {
			t.Errorf("%q has %d queries, want one", q.title, len(q.queries))
			continue
		}
		sql := strings.NewReplacer(":job_id", "("+theJob[q.title]+")", ":'executor'", "'worker-a'", ":'tag'", "'nightly'",
			":'customer'", "'103'", ":'schedule'", "'sales/nightly'", ":run", "6").Replace(q.queries[0])
		columns, rows := ask(t, pool, q.title, sql)
		if columns != want.columns {
			t.Errorf("%q has columns %s, want %s", q.title, columns, want.columns)
		}
		if len(rows) < want.rows || want.rows == 0 && len(rows) > 0 {
			t.Errorf("%q gives %d rows, want %d or more (0: none):\n%s", q.title, len(rows), want.rows, strings.Join(rows, "\n"))
		}
		if all := strings.Join(rows, "\n"); !strings.Contains(all, want.holds) {
			t.Errorf("%q: no %q in\n%s", q.title, want.holds, all)
		}
	}
	for title := range answers {
		if !asked[title] {
			t.Errorf("docs/sql.md no longer asks %q", title)
		}
	}
}

// ask runs a query and returns its column names and its rows as text.
func ask(t *testing.T, db queryer, title, sql string) (columns string, rows []string) {
	t.Helper()
	result, err := db.Query(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Errorf("%q: %v", title, err)
		return "", nil
	}
	defer result.Close()
	for result.Next() {
		var row strings.Builder
		for _, v := range result.RawValues() {
			row.Write(append(v, '|'))
		}
		rows = append(rows, row.String())
	}
	var names []string
	for _, c := range result.FieldDescriptions() {
		names = append(names, c.Name)
	}
	if err := result.Err(); err != nil {
		t.Errorf("%q: %v", title, err)
	}
	return strings.Join(names, " "), rows
}

// TestQuestionsAreParsed plants the faults that the test above is there to catch.
func TestQuestionsAreParsed(t *testing.T) {
	t.Parallel()
	page := "# T\n```sql\nSELECT 0\n```\n### One?\ntext\n```sql\nSELECT 1\n```\n### Two?\n```\nSELECT 2\n```\n### Three?\n" +
		"```sql\nSELECT 3\n```\n```sql\nSELECT 4\n```\n"
	all := questions(page)
	if len(all) != 3 || len(all[0].queries) != 1 || all[0].queries[0] != "SELECT 1\n" || len(all[1].queries) != 0 ||
		len(all[2].queries) != 2 {
		t.Errorf("questions are %+v", all)
	}
	if n := len(questions(readPage(t, "sql.md"))); n < 18 {
		t.Errorf("docs/sql.md asks %d questions, want at least 18", n)
	}
}

func TestEnqueueOfTheManual(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	_, part, found := strings.Cut(readPage(t, "sql.md"), "\n## Enqueue from SQL\n")
	part, _, _ = strings.Cut(part, "\n## Act from SQL\n")
	examples := sections("## Enqueue from SQL\n"+part, "## ")
	if !found || len(examples) != 1 || len(examples[0].queries) < 4 {
		t.Fatalf("docs/sql.md has examples %q", examples)
	}
	for _, query := range examples[0].queries {
		if _, rows := ask(t, pool, query, query); len(rows) == 0 {
			t.Errorf("nothing came from %s", query)
		}
	}
	if n := value[int](t, pool, `SELECT count(*)::int FROM pelton.job_state`); n != 5 {
		t.Errorf("the examples enqueued %d jobs, want 5", n)
	}
	for _, parameter := range values[string](t, pool, `SELECT unnest(proargnames[1:pronargs]) FROM pg_proc
		WHERE oid = (SELECT min(oid) FROM pg_proc WHERE proname = 'enqueue')`) {
		if !strings.Contains(part, "| `"+parameter+"` |") {
			t.Errorf("docs/sql.md does not explain parameter %s", parameter)
		}
	}
}

// TestStatesPageNamesEveryState compares docs/states.md with the outcomes and states of the database.
func TestStatesPageNamesEveryState(t *testing.T) {
	t.Parallel()
	pool := seeded(t)
	page := readPage(t, "states.md")
	words := values[string](t, pool, `SELECT unnest(enum_range(NULL::pelton.outcome))::text
		UNION SELECT unnest('{available,running,scheduled,retryable,pending,completed,cancelled,discarded}'::text[])`)
	for _, word := range words {
		if !regexp.MustCompile("(?m)^\\| `" + word + "` \\|").MatchString(page) {
			t.Errorf("docs/states.md has no row for %s", word)
		}
	}
}

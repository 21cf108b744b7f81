package jobs_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/schema/schematest"
)

func TestRawArgsUniqueKey(t *testing.T) {
	t.Parallel()
	client := newClient(t, schematest.Audited(t), nil)
	raw := func(kind, key string) jobs.RawArgs {
		return jobs.RawArgs{JobKind: kind, JSON: json.RawMessage(`{"n":1}`), UniqueKey: key}
	}
	first, err := client.Insert(t.Context(), raw("report", "a"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args      jobs.RawArgs
		duplicate bool
	}{
		{raw("report", "a"), true}, {raw("report", "b"), false}, {raw("other", "a"), false}, {raw("report", ""), false},
	} {
		res, err := client.Insert(t.Context(), c.args, nil)
		if err != nil {
			t.Fatal(err)
		}
		if res.UniqueSkippedAsDuplicate != c.duplicate || (res.Job.ID == first.Job.ID) != c.duplicate {
			t.Errorf("kind %s, key %q: duplicate is %v (job %d, the first is %d)", c.args.JobKind, c.args.UniqueKey,
				res.UniqueSkippedAsDuplicate, res.Job.ID, first.Job.ID)
		}
	}
	n, err := client.InsertManyFast(t.Context(), []river.InsertManyParams{{Args: raw("report", "a")}, {Args: raw("report", "c")}})
	if err != nil || n != 1 {
		t.Errorf("bulk with one duplicate of two: %d went in: %v", n, err)
	}
	_, err = client.Insert(t.Context(), raw("report", "a"), &river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true}})
	if err == nil || !strings.Contains(err.Error(), "want one of them") {
		t.Errorf("two unique keys for one job: %v", err)
	}
}

func TestRawArgsAreJSON(t *testing.T) {
	t.Parallel()
	client := newClient(t, schematest.Audited(t), nil)
	_, err := client.Insert(t.Context(), jobs.RawArgs{JobKind: "report", JSON: json.RawMessage(`{"n":`)}, nil)
	if err == nil || err.Error() != `job of kind "report": encode args: RawArgs.JSON is not valid JSON` {
		t.Errorf("half an object: %v", err)
	}
}

func TestReports(t *testing.T) {
	t.Parallel()
	client := newClient(t, schematest.Audited(t), nil)
	res, err := client.Insert(t.Context(), taskArgs{N: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	id := res.Job.ID
	if runs, err := client.JobRuns(t.Context(), id); err != nil || len(runs) != 0 {
		t.Errorf("runs of a job that waits: %v, %v", runs, err)
	}
	ctx := jobs.WithActor(t.Context(), "me")
	if _, err := client.JobCancel(ctx, id); err != nil {
		t.Fatal(err)
	}
	entries, err := client.AuditList(t.Context(), &jobs.AuditListParams{Actor: "me"})
	if err != nil || len(entries) != 1 || entries[0].Action != "job.cancel" {
		t.Errorf("audit: %v, %v", entries, err)
	}
	if _, err := client.AuditList(t.Context(), &jobs.AuditListParams{Limit: -1}); err == nil {
		t.Error("a negative limit is taken")
	}
	if executors, err := client.ExecutorList(t.Context(), nil); err != nil || len(executors) != 0 {
		t.Errorf("executors: %v, %v", executors, err)
	}
}

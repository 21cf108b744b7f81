package jobs

import (
	"encoding/json"
	"maps"
	"strings"
	"time"

	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs/internal/executor"
	"github.com/peltonq/pelton/jobs/internal/state"
	"github.com/peltonq/pelton/jobs/internal/store"
)

// Shared by all rows that have none; never written to, as their capacity is their length.
var (
	noErrors   = []rivertype.AttemptError{}
	noTags     = []string{}
	noMetadata = []byte("{}")
)

// fillRow makes the job row that a worker sees.
func (r *runner) fillRow(row *rivertype.JobRow, t *executor.Task) {
	j := t.Job
	*row = rivertype.JobRow{
		ID:           j.ID,
		Attempt:      int(t.Attempts) + 1,
		AttemptedAt:  &t.StartedAt,
		AttemptedBy:  r.by[:1:1],
		CreatedAt:    j.CreatedAt,
		EncodedArgs:  j.Args,
		Errors:       noErrors,
		Kind:         j.Kind,
		MaxAttempts:  int(j.MaxAttempts),
		Metadata:     noMetadata,
		Priority:     int(j.Priority),
		Queue:        j.Queue,
		ScheduledAt:  scheduledAt(t),
		State:        rivertype.JobStateRunning,
		Tags:         noTags,
		UniqueKey:    j.UniqueKey,
		UniqueStates: state.FromBits(byte(j.UniqueStates)),
	}
	if len(j.Tags) > 0 {
		row.Tags = j.Tags
	}
	switch {
	case j.ExtraMetadata != nil || len(t.Earlier) > 0:
		row.Metadata = mergedMetadata(j, t.Earlier)
	case j.Metadata != nil:
		row.Metadata = j.Metadata // nothing was added: they need not be read and written
	}
	if len(t.Earlier) > 0 {
		row.Errors, row.AttemptedBy = history(t.Earlier, r.by[0])
	}
}

// scheduledAt is the time that the run was asked for: of a first run the job's, later when the run before wanted it; or what a person made of it since.
func scheduledAt(t *executor.Task) time.Time {
	if t.Job.Due != nil && t.Job.DueRun == t.Run {
		return *t.Job.Due
	}
	if n := len(t.Earlier); n > 0 {
		if last := &t.Earlier[n-1]; last.Due != nil {
			return *last.Due
		}
		return t.Earlier[n-1].EndedAt
	}
	if t.Job.ScheduledAt != nil {
		return *t.Job.ScheduledAt
	}
	return t.Job.CreatedAt
}

// history lists the errors of the runs before and who attempted them: the last store.EarlierRuns of each.
func history(earlier []store.Attempt, me string) (errs []rivertype.AttemptError, by []string) {
	errs = noErrors
	for _, a := range earlier {
		if a.StartedAt != nil && a.Executor != "" {
			by = append(by, a.Executor)
		}
		if a.Error != nil {
			errs = append(errs, rivertype.AttemptError{At: a.EndedAt, Attempt: int(a.Attempt), Error: *a.Error, Trace: a.Trace})
		}
	}
	return last(errs), append(last(by), me)
}

func last[T any](list []T) []T { return list[max(0, len(list)-store.EarlierRuns):] }

// carryEvery is the number of runs after which one notes again what those before it left, so that the next claim finds the note
// among the runs that it reads, even if some of them were not ended by a worker.
const carryEvery = store.EarlierRuns / 2

// carried is what the runs before left in the metadata, if it is time to note it.
func carried(t *executor.Task) []byte {
	noted := int32(0)
	for _, a := range t.Earlier {
		if a.Carried != nil {
			noted = a.Run
		}
	}
	if t.Run-noted <= carryEvery {
		return nil
	}
	return mergedMetadata(&store.Job{}, t.Earlier)
}

// mergedMetadata is the job's metadata, what each run added, in order, and what a person added.
func mergedMetadata(j *store.Job, earlier []store.Attempt) []byte {
	merged := map[string]json.RawMessage{}
	add := func(patch []byte) {
		var m map[string]json.RawMessage
		if patch != nil && json.Unmarshal(patch, &m) == nil {
			maps.Copy(merged, m)
		}
	}
	add(j.Metadata)
	for _, a := range earlier {
		add(a.Carried)
		add(a.Metadata)
		if a.Output != nil {
			merged[rivertype.MetadataKeyOutput] = a.Output
		}
	}
	add(j.ExtraMetadata)
	b, err := json.Marshal(merged)
	if err != nil {
		return noMetadata // not reached: every part was valid JSON
	}
	return b
}

// countSnooze adds the number of snoozes so far to a metadata patch, as River does.
func countSnooze(metadata, patch []byte) []byte {
	var known struct {
		Snoozes int `json:"snoozes"`
	}
	_ = json.Unmarshal(metadata, &known) // metadata of another shape counts as none
	merged := map[string]json.RawMessage{}
	if patch != nil {
		_ = json.Unmarshal(patch, &merged)
	}
	merged["snoozes"], _ = json.Marshal(known.Snoozes + 1)
	b, _ := json.Marshal(merged)
	return b
}

// maxTextBytes bounds error texts and traces.
const maxTextBytes = 64 << 10

// cleanText makes a text fit for Postgres: valid UTF-8, no NUL bytes, of bounded length.
func cleanText(s string) string {
	if len(s) > maxTextBytes {
		s = s[:maxTextBytes] + "\n[cut at 64 KiB]"
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\\0")
}

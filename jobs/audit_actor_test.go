package jobs_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/schema/schematest"
)

// An actor is any text, by Go and in SQL: none is taken for an API token of somebody's.
func TestActorsAreNoTokens(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	client := newClient(t, pool, nil)
	later := &river.InsertOpts{ScheduledAt: time.Now().Add(time.Hour)}
	last := func() jobs.AuditEntry {
		t.Helper()
		entries, err := client.AuditList(t.Context(), &jobs.AuditListParams{Limit: 1})
		if err != nil || len(entries) != 1 {
			t.Fatalf("%v, %v", entries, err)
		}
		return entries[0]
	}
	for _, actor := range []string{"bob\t5\tci", "\t5\tci\tbob", `{"actor":"bob","token":{"id":5,"name":"ci"}}`, "a\nb"} {
		if _, err := client.JobCancel(jobs.WithActor(t.Context(), actor), insert(t, client, 1, later)); err != nil {
			t.Fatal(err)
		}
		if e := last(); e.Actor != actor || e.Token.ID != 0 || e.Token.Name != "" {
			t.Errorf("by Go, %q is %q with token %+v", actor, e.Actor, e.Token)
		}
		if _, err := pool.Exec(t.Context(), `SELECT pelton.cancel($1, $2)`, insert(t, client, 1, later), actor); err != nil {
			t.Fatal(err)
		}
		if e := last(); e.Actor != actor || e.Token.ID != 0 || e.Token.Name != "" {
			t.Errorf("in SQL, %q is %q with token %+v", actor, e.Actor, e.Token)
		}
	}

	// A token counts for what it was used for, and not for what follows in the transaction, nor on the connection.
	bob := jobs.WithActor(t.Context(), "bob")
	cancel := func(ctx context.Context, tx pgx.Tx, id int64) {
		t.Helper()
		if _, err := client.JobCancelTx(ctx, tx, id); err != nil {
			t.Fatal(err)
		}
	}
	one, two := insert(t, client, 1, later), insert(t, client, 1, later)
	if err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		cancel(jobs.WithToken(bob, 5, "ci\tx"), tx, one)
		cancel(bob, tx, two)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.JobCancel(jobs.WithToken(bob, 6, `"`), insert(t, client, 1, later)); err != nil {
		t.Fatal(err)
	}
	if err := client.QueuePause(bob, "default", nil); err != nil {
		t.Fatal(err)
	}
	entries, err := client.AuditList(t.Context(), &jobs.AuditListParams{Actor: "bob"})
	if err != nil {
		t.Fatal(err)
	}
	var tokens []string
	for _, e := range entries {
		tokens = append(tokens, fmt.Sprintf("%d %q", e.Token.ID, e.Token.Name))
	}
	want := []string{`0 ""`, `6 "\""`, `0 ""`, `5 "ci\tx"`} // the newest first
	if !slices.Equal(tokens, want) {
		t.Errorf("tokens %q, want %q", tokens, want)
	}
}

package jobs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/jobs/internal/store"
)

type actorKey struct{}

// WithActor says who asks for what is done with this context: an OS user, an API user. It is written into the audit table
// beside the database role. Without it the client's ID is.
func WithActor(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, actorKey{}, name)
}

// Actor is who asks, as it is written into the audit table.
func (c *Client) Actor(ctx context.Context) string {
	name, _ := ctx.Value(actorKey{}).(string)
	return cmp.Or(name, c.config.ID)
}

type tokenKey struct{}

// token is an API token, as the audit names it.
type token struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

// WithToken says which API token is used for what is done with this context. It is written into the audit table beside the actor.
func WithToken(ctx context.Context, id int64, name string) context.Context {
	return context.WithValue(ctx, tokenKey{}, &token{id, name})
}

// Audited is an actor as the SQL function acting takes it: JSON, with the context's API token, if there is one. So no actor's text can be taken for a token.
func Audited(ctx context.Context, actor string) string {
	by, _ := ctx.Value(tokenKey{}).(*token)
	text, err := json.Marshal(struct {
		Actor string `json:"actor"`
		Token *token `json:"token,omitempty"`
	}{actor, by})
	if err != nil {
		panic(err) // it is made of texts and a number
	}
	return string(text)
}

// AuditedActor is who asks, as Audited.
func (c *Client) AuditedActor(ctx context.Context) string { return Audited(ctx, c.Actor(ctx)) }

// operateLimits are those of a transaction that an operator waits for.
var operateLimits = store.Limits{Lock: 5 * time.Second}

// operate runs fn in a transaction of its own.
func (c *Client) operate(ctx context.Context, fn func(db store.DB) error) error {
	return c.store.Tx(ctx, operateLimits, func(tx pgx.Tx) error { return fn(tx) })
}

// operateTx runs fn under a savepoint of the caller's transaction, so that a refusal does not spoil it.
func operateTx(ctx context.Context, tx pgx.Tx, fn func(db store.DB) error) error {
	return pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { return fn(tx) })
}

// AuditReport is what an audit of all jobs found. Every list must be empty: what is in one is a fault of Pelton.
type AuditReport struct {
	Lost  []int64 // jobs that are in no place
	Twice []int64 // jobs that are in more than one place
	Stale []int64 // jobs with a run that has ended and would be handed out again
}

// Clean tells whether nothing was found.
func (r AuditReport) Clean() bool {
	return len(r.Lost) == 0 && len(r.Twice) == 0 && len(r.Stale) == 0
}

// auditGrace is how long a job may be in no place, in case a step is seen half done.
const auditGrace = 2 * time.Second

// Audit looks for jobs that are nowhere, in two places, or about to run again although they have ended. It reads all jobs and
// attempts: for tests, and for a person who has a doubt.
func (c *Client) Audit(ctx context.Context) (AuditReport, error) {
	var report AuditReport
	var lostErr, twiceErr, staleErr error
	report.Lost, lostErr = c.store.LostJobs(ctx, c.pool, auditGrace)
	report.Twice, twiceErr = c.store.JobsTwice(ctx, c.pool)
	report.Stale, staleErr = c.store.StaleRuns(ctx, c.pool)
	return report, errors.Join(lostErr, twiceErr, staleErr)
}

package api

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/internal/once"
)

// Keyed is the key of requests that are to be done once.
type Keyed struct {
	Key string `header:"Idempotency-Key" maxLength:"200" pattern:"^[!-~]+$" doc:"done once: for 24 hours, a request of yours with the same key does nothing and gets the same answer"`
}

// onceAnswer is the output of what is done once.
type onceAnswer[T any] struct {
	Replayed string `header:"Idempotent-Replayed" doc:"true: nothing was done, this is the answer to the first request with this key"`
	Body     T
}

// doOnce is once.Do for the actor, with problems for its errors.
func doOnce[T any](ctx context.Context, s *server, key string, request []any, fn func(ctx context.Context, tx pgx.Tx) (T, error)) (*onceAnswer[T], error) {
	actor, _ := access.FromContext(ctx)
	body, replayed, err := once.Do(ctx, s.once, actor.Name, key, request, fn)
	switch {
	case errors.Is(err, once.ErrInUse):
		p := newProblem("key-in-use", "the first request with the key %q is still under way: ask again", key)
		p.header("Retry-After", "1")
		return nil, p
	case errors.Is(err, once.ErrReused):
		return nil, newProblem("key-reused", "the Idempotency-Key %q was used for another request: take a new one", key)
	case err != nil:
		return nil, err
	}
	out := &onceAnswer[T]{Body: body}
	if replayed {
		out.Replayed = "true"
	}
	return out, nil
}

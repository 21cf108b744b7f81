package page

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/admin/internal/once"
)

// onceKey is the field of a form under whose value its action is done once, however often its button is pressed. Each form that is shown has
// another; a form that has none is done each time.
const onceKey = "key"

const longestKey = 200

// keyOf is the key that a form was sent with, or else the given one.
func keyOf(r *http.Request, none string) (string, error) {
	key := cmp.Or(r.PostFormValue(onceKey), none)
	if len(key) > longestKey {
		return "", badInput("%s: want at most %d characters", onceKey, longestKey)
	}
	return key, nil
}

// doOnce runs fn for a form in a transaction. To the same form, sent again, the answer is that of the first.
func doOnce[T any](p *Page, r *http.Request, fn func(ctx context.Context, tx pgx.Tx) (T, error)) (answer T, err error) {
	key, err := keyOf(r, "")
	if err != nil {
		return answer, err
	}
	fields := maps.Clone(r.PostForm)
	fields.Del(onceKey)
	answer, _, err = once.Do(r.Context(), p.once, actor(r.Context()).Name, key, []any{"page: " + r.URL.Path, fields}, fn)
	switch {
	case errors.Is(err, once.ErrReused):
		return answer, refused(errors.New("this form was sent before, with other values, and that was done. To do this too, load the page again"))
	case errors.Is(err, once.ErrInUse):
		return answer, refused(err)
	}
	return answer, err
}

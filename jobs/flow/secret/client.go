package secret

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/internal/quantity"
	"github.com/peltonq/pelton/internal/sqlfile"
	"github.com/peltonq/pelton/jobs"
)

//go:embed sql/*.sql
var files embed.FS

// Everywhere is the project of secrets that all projects may use.
const Everywhere = "*"

// Limits of a value: a shorter one could not be told from other text in what programs print, a longer one would be no use in an environment.
const (
	MinValue = 4
	MaxValue = 64 << 10
)

// ErrNotFound says that there is no secret of that project and name.
var ErrNotFound = errors.New("not found")

// InputError is about a value that was given: a project, a name, a secret.
type InputError struct{ err error }

func (e *InputError) Error() string { return e.err.Error() }
func (e *InputError) Unwrap() error { return e.err }

func invalidf(format string, args ...any) error { return &InputError{fmt.Errorf(format, args...)} }

var (
	secretName  = regexp.MustCompile(`\A[a-zA-Z_][a-zA-Z0-9_]{0,63}\z`)
	projectName = regexp.MustCompile(`\A(?:\*|[a-zA-Z0-9][a-zA-Z0-9_.-]{0,63})\z`)
)

// IsName tells whether a secret may be called so.
func IsName(name string) bool { return secretName.MatchString(name) }

func check(project, name string) error {
	switch {
	case !projectName.MatchString(project):
		return invalidf("project %q: want the name of a project, or * for all", project)
	case !IsName(name):
		return invalidf("name %q of a secret: want up to 64 letters, digits and _, the first no digit", name)
	}
	return nil
}

// Secret is what may be known of one.
type Secret struct {
	Project string    `json:"project"` // Everywhere: all that have none of that name
	Name    string    `json:"name"`
	Version int32     `json:"version"` // 1, 2, ...: raised by every new value
	Key     string    `json:"key"`     // the id of the key that encrypted it
	SetAt   time.Time `json:"set_at"`
	SetBy   string    `json:"set_by"`
}

// Client sets, lists and deletes secrets, in the name of whom the context says (jobs.WithActor). It asks nobody whether they may: who offers it to
// others lets viewers list and admins change. Safe for concurrent use.
type Client struct {
	pool *pgxpool.Pool
	jobs *jobs.Client
	keys Source
	sql  *sqlfile.Set
}

// NewClient makes a client on a jobs client and its pool. keys may be nil, as for who only lists and deletes.
func NewClient(pool *pgxpool.Pool, queue *jobs.Client, keys Source) *Client {
	if keys == nil {
		keys = KeyFile("")
	}
	return &Client{pool, queue, keys, sqlfile.Load(files, "sql", queue.Schema())}
}

// Ready tells whether Set can encrypt; the error says why not, as ErrNoKey.
func (c *Client) Ready() error {
	_, err := c.keys.Keys()
	return err
}

// Set gives a secret a value, whether it is new or not. Runs that begin a program later use it.
func (c *Client) Set(ctx context.Context, project, name string, value []byte) (Secret, error) {
	if err := check(project, name); err != nil {
		return Secret{}, err
	}
	switch {
	case len(value) < MinValue:
		return Secret{}, invalidf("the value of secret %s has %s, want %d or more: a shorter one could not be kept out of logs", name, quantity.Of(len(value), "byte"), MinValue)
	case len(value) > MaxValue:
		return Secret{}, invalidf("the value of secret %s has %d bytes, at most %d are allowed", name, len(value), MaxValue)
	case bytes.IndexByte(value, 0) >= 0:
		return Secret{}, invalidf("the value of secret %s holds a NUL byte, which no environment takes", name)
	}
	keys, err := c.keys.Keys()
	if err != nil {
		return Secret{}, fmt.Errorf("set secret %s: %w", name, err)
	}
	var s Secret
	err = c.tx(ctx, func(tx pgx.Tx) error {
		s, err = c.set(ctx, tx, keys, place{project, name, 1}, value)
		return err
	})
	if err != nil {
		return Secret{}, fmt.Errorf("set secret %s: %w", name, err)
	}
	return s, nil
}

func (c *Client) set(ctx context.Context, tx pgx.Tx, keys *Keys, p place, value []byte) (Secret, error) {
	by := c.jobs.Actor(ctx)
	var before any
	for try := 0; ; try++ {
		p.version = 1
		v := keys.seal(p, value)
		added, err := sqlfile.Exec(ctx, c.sql, tx, "add", p.project, p.name, p.version, by, v.Key, v.Nonce, v.Value)
		if err != nil {
			return Secret{}, err
		}
		if added == 1 {
			break
		}
		old, err := sqlfile.Rows(ctx, c.sql, tx, pgx.RowToStructByPos[row], "lock", p.project, p.name)
		if err != nil {
			return Secret{}, err
		}
		if len(old) == 0 && try < 10 { // somebody has just deleted it
			continue
		}
		if len(old) == 0 {
			return Secret{}, errors.New("somebody else keeps setting and deleting it")
		}
		before = fields{"version": old[0].Version}
		p.version = old[0].Version + 1
		v = keys.seal(p, value)
		if _, err := sqlfile.Exec(ctx, c.sql, tx, "replace", p.project, p.name, p.version, by, v.Key, v.Nonce, v.Value); err != nil {
			return Secret{}, err
		}
		break
	}
	now, err := sqlfile.Rows(ctx, c.sql, tx, pgx.RowToStructByPos[row], "lock", p.project, p.name)
	if err != nil || len(now) == 0 {
		return Secret{}, errors.Join(err, ErrNotFound)
	}
	return now[0].secret(), c.audit(ctx, tx, "secret.set", p.String(), before, fields{"version": p.version, "key": keys.newest})
}

// ListParams say which secrets to list. Zero fields ask for nothing.
type ListParams struct {
	Projects []string // of these; Everywhere: those for all projects
	After    *Secret  // continue a list: its last secret
	Limit    int      // at most so many; 0: all
}

// List lists secrets by project and name, without their values.
func (c *Client) List(ctx context.Context, p ListParams) ([]Secret, error) {
	var project, name *string
	if p.After != nil {
		project, name = &p.After.Project, &p.After.Name
	}
	found, err := sqlfile.Rows(ctx, c.sql, c.pool, pgx.RowToStructByPos[Secret], "list", p.Projects, project, name, sqlfile.AtMost(p.Limit))
	if err != nil {
		return nil, fmt.Errorf("list secrets: %w", err)
	}
	return found, nil
}

// Delete deletes a secret, or returns ErrNotFound.
func (c *Client) Delete(ctx context.Context, project, name string) error {
	if err := check(project, name); err != nil {
		return err
	}
	p := place{project: project, name: name}
	err := c.tx(ctx, func(tx pgx.Tx) error {
		gone, err := sqlfile.Rows(ctx, c.sql, tx, pgx.RowTo[int32], "delete", project, name)
		if err != nil {
			return err
		}
		if len(gone) == 0 {
			return ErrNotFound
		}
		return c.audit(ctx, tx, "secret.delete", p.String(), fields{"version": gone[0]}, nil)
	})
	if err != nil {
		return fmt.Errorf("delete %s: %w", p, err)
	}
	return nil
}

// Rekeyed is what Rekey has done.
type Rekeyed struct {
	Key     string   `json:"key"`     // the id of the newest key
	Changed int      `json:"changed"` // secrets that have it now and had another
	Left    []string `json:"left"`    // what could not be decrypted, and why
}

// Rekey encrypts with the newest key what others have encrypted. What cannot be decrypted stays as it is.
func (c *Client) Rekey(ctx context.Context) (done Rekeyed, err error) {
	keys, err := c.keys.Keys()
	if err != nil {
		return done, fmt.Errorf("rekey: %w", err)
	}
	err = c.tx(ctx, func(tx pgx.Tx) error {
		done = Rekeyed{Key: keys.newest, Left: []string{}}
		rows, err := sqlfile.Rows(ctx, c.sql, tx, pgx.RowToStructByPos[row], "lock_all", keys.newest)
		if err != nil {
			return err
		}
		for _, r := range rows {
			p := place{r.Project, r.Name, r.Version}
			value, err := keys.open(p, r.sealed())
			if err != nil {
				done.Left = append(done.Left, err.Error())
				continue
			}
			v := keys.seal(p, value)
			if _, err := sqlfile.Exec(ctx, c.sql, tx, "encrypt", r.Project, r.Name, v.Key, v.Nonce, v.Value); err != nil {
				return err
			}
			if err := c.audit(ctx, tx, "secret.rekey", p.String(), fields{"key": r.Key}, fields{"key": v.Key}); err != nil {
				return err
			}
			done.Changed++
		}
		return nil
	})
	if err != nil {
		return Rekeyed{}, fmt.Errorf("rekey: %w", err)
	}
	return done, nil
}

// row is a row of the table.
type row struct {
	Project, Name string
	Version       int32
	SetAt         time.Time
	SetBy         string
	Key           string
	Nonce, Value  []byte
}

func (r row) sealed() sealed { return sealed{r.Key, r.Nonce, r.Value} }

func (r row) secret() Secret { return Secret{r.Project, r.Name, r.Version, r.Key, r.SetAt, r.SetBy} }

// tx runs fn in a READ COMMITTED transaction that waits for a lock for at most a while.
func (c *Client) tx(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, c.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '5s'"); err != nil {
			return fmt.Errorf("set limits of a transaction: %w", err)
		}
		return fn(tx)
	})
}

// fields are what an audit entry says of before or after.
type fields map[string]any

func (c *Client) audit(ctx context.Context, db sqlfile.DB, action, target string, before, after any) error {
	_, err := sqlfile.Exec(ctx, c.sql, db, "audit", c.jobs.AuditedActor(ctx), action, target, encode(before), encode(after))
	return err
}

// encode makes JSON of what this package puts together itself.
func encode(v any) *string {
	if v == nil {
		return nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return new(string(b))
}

package access_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/schema/schematest"
)

// statements counts what is sent to the database.
type statements struct{ n atomic.Int64 }

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	s.n.Add(1)
	return ctx
}
func (s *statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// A failed login does the same work and gives the same answer, whatever it fails for: one hash, the same number of statements.
func TestFailedLoginsAreAlike(t *testing.T) {
	t.Parallel()
	counted := &statements{}
	pool := schematest.Pool(t, func(c *pgxpool.Config) { c.ConnConfig.Tracer = counted })
	s, err := access.NewStore(pool, access.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s.Cheap()
	addUser(t, s, "alice", everything(access.Viewer))
	addUser(t, s, "carol", everything(access.Viewer))
	if _, err := s.Disable(t.Context(), by, "carol"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AddUser(t.Context(), by, access.NewUser{Name: "bob"}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ what, name, password string }{
		{"wrong password", "alice", "wrong password"},
		{"no such user", "nobody", password},
		{"no user's name", "a'b", password},
		{"no name", "", password},
		{"no password is set", "bob", password},
		{"no password", "alice", ""},
		{"disabled", "carol", password},
		{"long password", "alice", strings.Repeat("x", 1<<20)},
	} {
		hashes, sent := s.Hashes(), counted.n.Load()
		_, err := s.Login(t.Context(), c.name, c.password, "192.0.2.7")
		if !errors.Is(err, access.ErrLogin) || err.Error() != access.ErrLogin.Error() {
			t.Errorf("%s: %v", c.what, err)
		}
		if n := s.Hashes() - hashes; n != 1 {
			t.Errorf("%s: %d hashes, want 1", c.what, n)
		}
		if n := counted.n.Load() - sent; n != 10 {
			t.Errorf("%s: %d statements, want 10", c.what, n)
		}
	}
	log := audited(t, pool)
	for i, name := range []string{"alice", "nobody", "?", "?", "bob", "alice", "carol", "alice"} {
		if want := fmt.Sprintf(`- login.failed user %s - {"address": "192.0.2.7"}`, name); log[len(log)-8+i] != want {
			t.Errorf("audit: %s, want %s", log[len(log)-8+i], want)
		}
	}
}

func limited(t *testing.T, err error) time.Duration {
	t.Helper()
	if limit, ok := errors.AsType[*access.LimitedError](err); ok {
		return limit.After
	}
	return 0
}

// free lets the next try be looked at.
func free(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	mustExec(t, pool, `UPDATE pelton.access_failure SET free_at = now()`)
}

// waits is how many seconds a key has to wait after its last try. It is made an hour, so that a slow test sees it too.
func waits(t *testing.T, pool *pgxpool.Pool, key string) (seconds float64) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), `SELECT round(extract(epoch FROM free_at - at)) FROM pelton.access_failure WHERE key = $1`, key).Scan(&seconds); err != nil {
		t.Fatal(err)
	}
	mustExec(t, pool, `UPDATE pelton.access_failure SET free_at = now() + interval '1 hour' WHERE key = $1`, key)
	return seconds
}

// After five failures each further one doubles the wait, up to a minute; success and time forgive.
func TestLimitOfAName(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	addUser(t, s, "alice", everything(access.Viewer))
	n := 0
	try := func(name, password string) error {
		n++
		_, err := s.Login(t.Context(), name, password, fmt.Sprintf("192.0.2.%d", n))
		return err
	}
	for i, want := range []float64{0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60} {
		if err := try("Alice", "wrong password"); !errors.Is(err, access.ErrLogin) {
			t.Fatalf("failure %d: %v", i+1, err)
		}
		hashes := s.Hashes()
		if got := waits(t, pool, "name:alice"); got != want {
			t.Errorf("after failure %d it has to wait %v s, want %v", i+1, got, want)
		}
		if err := try("alice", password); limited(t, err) < time.Hour/2 || limited(t, err) > time.Hour || s.Hashes() != hashes {
			t.Errorf("while it has to wait: %v, %d hashes", err, s.Hashes()-hashes)
		}
		free(t, pool)
	}
	if err := try("bob", "wrong password"); !errors.Is(err, access.ErrLogin) {
		t.Errorf("another name: %v", err)
	}
	if err := try("alice", password); err != nil {
		t.Errorf("with the password: %v", err)
	}
	for range 4 {
		if err := try("alice", "wrong password"); !errors.Is(err, access.ErrLogin) {
			t.Errorf("after the success: %v", err)
		}
	}
	mustExec(t, pool, `UPDATE pelton.access_failure SET at = at - interval '61 minutes'`)
	for range 4 {
		if err := try("alice", "wrong password"); !errors.Is(err, access.ErrLogin) {
			t.Errorf("an hour later: %v", err)
		}
	}
	if got := waits(t, pool, "name:alice"); got != 0 {
		t.Errorf("an hour later it has to wait %v s", got)
	}
}

// An address may fail twenty times, by whatever names. Those who share it and know their password are not counted.
func TestLimitOfAnAddress(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	addUser(t, s, "alice", everything(access.Viewer))
	for i := range 20 {
		if i > 0 {
			login(t, s, "alice")
		}
		if _, err := s.Login(t.Context(), fmt.Sprint("user", i), password, address); !errors.Is(err, access.ErrLogin) {
			t.Fatalf("failure %d: %v", i+1, err)
		}
	}
	if got := waits(t, pool, "address:"+address); got != 1 {
		t.Errorf("after 20 failures it has to wait %v s", got)
	}
	if _, err := s.Login(t.Context(), "alice", password, address); limited(t, err) == 0 {
		t.Errorf("after 20 failures: %v", err)
	}
	if _, err := s.Login(t.Context(), "alice", password, "192.0.2.9"); err != nil {
		t.Errorf("from elsewhere: %v", err)
	}
	var names int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM pelton.access_failure WHERE key = 'name:alice'`).Scan(&names); err != nil || names != 0 {
		t.Errorf("a try that was not looked at is counted: %d, %v", names, err)
	}
	free(t, pool)
	login(t, s, "alice") // takes back its own try only
	if _, err := s.Login(t.Context(), "user", password, address); !errors.Is(err, access.ErrLogin) {
		t.Errorf("failure 21: %v", err)
	}
	if got := waits(t, pool, "address:"+address); got != 2 {
		t.Errorf("after 21 failures it has to wait %v s", got)
	}
}

// Many tries at once are no way round the limit.
func TestManyTriesAtOnce(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	addUser(t, s, "alice", everything(access.Viewer))
	var looked atomic.Int64
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			_, err := s.Login(t.Context(), "alice", "wrong password", fmt.Sprintf("192.0.2.%d", i))
			switch {
			case errors.Is(err, access.ErrLogin):
				looked.Add(1)
			case limited(t, err) == 0:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := looked.Load(); n < 5 || n > 12 { // 5 are free; some more if this takes long
		t.Errorf("%d of 40 tries were looked at", n)
	}
}

// A try whose password was never looked at, since too many log in at once, is no failure.
func TestTriesThatAreNotJudged(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	addUser(t, s, "alice", everything(access.Viewer))
	for range 3 {
		if _, err := s.Login(t.Context(), "alice", "wrong password", address); !errors.Is(err, access.ErrLogin) {
			t.Fatal(err)
		}
	}
	leave := s.FillLine(t)
	for i := range 9 {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := s.Login(ctx, "alice", password, address)
			done <- err
		}()
		s.AwaitWaiting(t, 1)
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "too many log in") {
			t.Errorf("try %d: %v", i+1, err)
		}
	}
	for _, key := range []string{"name:alice", "address:" + address} {
		var count int
		if err := pool.QueryRow(t.Context(), `SELECT count FROM pelton.access_failure WHERE key = $1 AND free_at <= clock_timestamp()`, key).Scan(&count); err != nil || count != 3 {
			t.Errorf("%s: %d failures, %v; want 3", key, count, err)
		}
	}
	leave()
	login(t, s, "alice")
}

func TestHashes(t *testing.T) {
	t.Parallel()
	h := access.UsualHasher()
	one, err := h.HashOf(t.Context(), password)
	if err != nil || !strings.HasPrefix(one, "$argon2id$v=19$m=32768,t=3,p=1$") {
		t.Fatalf("%s, %v", one, err)
	}
	two, err := h.HashOf(t.Context(), password)
	if err != nil || one == two {
		t.Errorf("no salt: %s, %v", two, err)
	}
	for _, c := range []struct {
		password, stored string
		want             bool
	}{{password, one, true}, {password + " ", one, false}, {"", one, false}, {password, "", false}, {"", "", false}} {
		if got, err := h.Matches(t.Context(), c.password, c.stored); got != c.want || err != nil {
			t.Errorf("%q against %q: %v, %v", c.password, c.stored, got, err)
		}
	}
	for _, stored := range []string{
		"x", "$argon2i$v=19$m=8,t=1,p=1$AAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAA", "$argon2id$v=19$m=99999999,t=1,p=1$AAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAA",
		"$argon2id$v=19$m=8,t=0,p=1$AAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAA", "$argon2id$v=19$m=8,t=1,p=1$$", "$argon2id$v=19$m=8,t=1,p=1$AAAAAAAAAAAAAAAA$AA",
	} {
		if _, err := h.Matches(t.Context(), password, stored); err == nil {
			t.Errorf("%q is a hash", stored)
		}
	}
}

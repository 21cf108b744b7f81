package access_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/schema/schematest"
)

const (
	by       = "os:tester"
	password = "correct horse"
	address  = "192.0.2.1"
)

// newStore is on a migrated database of its own.
func newStore(t *testing.T) (*access.Store, *pgxpool.Pool) {
	t.Helper()
	pool := schematest.Pool(t)
	s, err := access.NewStore(pool, access.Config{LastAdmin: true}) // TestLastAdmin has one that keeps it
	if err != nil {
		t.Fatal(err)
	}
	return s.Cheap(), pool
}

func addUser(t *testing.T, s *access.Store, name string, roles ...access.Grant) access.User {
	t.Helper()
	u, err := s.AddUser(t.Context(), by, access.NewUser{Name: name, Password: password, Roles: roles})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func everything(role access.Role) access.Grant {
	return access.Grant{Project: access.Everything, Role: role}
}

func in(project string, role access.Role) access.Grant {
	return access.Grant{Project: project, Role: role}
}

func mustExec(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// audited lists what the audit holds, as "actor action target before after".
func audited(t *testing.T, pool *pgxpool.Pool) []string {
	t.Helper()
	rows, err := pool.Query(t.Context(), `SELECT concat_ws(' ', coalesce(actor, '-'), action, target, coalesce(before::text, '-'), coalesce(after::text, '-'))
		FROM pelton.audit ORDER BY id`)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func wantAudit(t *testing.T, pool *pgxpool.Pool, want ...string) {
	t.Helper()
	if got := audited(t, pool); !slices.Equal(got, want) {
		t.Errorf("audit:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestUsers(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	known := func(what string, want access.Known) {
		t.Helper()
		if got, err := s.Known(t.Context()); got != want || err != nil {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
	known("no users", access.Known{})
	alice := addUser(t, s, "Alice", everything(access.Operator), in("etl", access.Admin))
	if alice.Name != "Alice" || alice.PasswordAt == nil || alice.DisabledAt != nil || len(alice.Roles) != 2 || alice.Roles[1].Project != "etl" {
		t.Errorf("user: %+v", alice)
	}
	known("an operator", access.Known{Anyone: true})
	if _, err := s.AddUser(t.Context(), by, access.NewUser{Name: "aLICE", Password: password}); !errors.Is(err, access.ErrExists) {
		t.Errorf("a second of that name: %v", err)
	}
	for range 2 {
		if err := s.SetRole(t.Context(), by, "alice", everything(access.Admin)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.SetRole(t.Context(), by, "alice", in("etl", access.NoRole)); err != nil {
		t.Fatal(err)
	}
	known("an admin", access.Known{Anyone: true, Admin: true})
	if changed, err := s.Disable(t.Context(), by, "alice"); !changed || err != nil {
		t.Errorf("disable: %v, %v", changed, err)
	}
	if changed, err := s.Disable(t.Context(), by, "alice"); changed || err != nil {
		t.Errorf("disable again: %v, %v", changed, err)
	}
	known("a disabled admin", access.Known{Anyone: true})
	if changed, err := s.Enable(t.Context(), by, "alice"); !changed || err != nil {
		t.Errorf("enable: %v, %v", changed, err)
	}
	if err := s.SetPassword(t.Context(), by, "alice", "another password"); err != nil {
		t.Error(err)
	}
	bob, err := s.AddUser(t.Context(), by, access.NewUser{Name: "bob"})
	if err != nil || bob.PasswordAt != nil || len(bob.Roles) != 0 {
		t.Errorf("a user without a password: %+v, %v", bob, err)
	}
	if err := s.SetRole(t.Context(), by, "bob", everything(access.Admin)); err != nil {
		t.Fatal(err)
	}
	known("two admins", access.Known{Anyone: true, Admin: true, AdminByOIDC: true})
	list, err := s.UserList(t.Context(), access.UserListParams{})
	if err != nil || len(list) != 2 || list[0].Name != "Alice" || list[0].Roles[0].Role != access.Admin || list[1].Name != "bob" {
		t.Errorf("list: %+v, %v", list, err)
	}
	for what, err := range map[string]error{
		"password": s.SetPassword(t.Context(), by, "carol", password), "role": s.SetRole(t.Context(), by, "carol", everything(access.Viewer)),
	} {
		if !errors.Is(err, access.ErrNotFound) {
			t.Errorf("%s of nobody: %v", what, err)
		}
	}
	wantAudit(t, pool,
		by+` user.add user Alice - {"password": true}`,
		by+` user.role user Alice {"role": "none", "project": "*"} {"role": "operator", "project": "*"}`,
		by+` user.role user Alice {"role": "none", "project": "etl"} {"role": "admin", "project": "etl"}`,
		by+` user.role user Alice {"role": "operator", "project": "*"} {"role": "admin", "project": "*"}`,
		by+` user.role user Alice {"role": "admin", "project": "etl"} {"role": "none", "project": "etl"}`,
		by+` user.disable user Alice {"disabled": false} {"disabled": true, "ended_sessions": 0}`,
		by+` user.enable user Alice {"disabled": true} {"disabled": false, "ended_sessions": 0}`,
		by+` user.password user Alice {"password": true} {"password": true, "ended_sessions": 0}`,
		by+` user.add user bob - {"password": false}`,
		by+` user.role user bob {"role": "none", "project": "*"} {"role": "admin", "project": "*"}`,
	)
}

func TestWhatCannotBeAUser(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	for _, u := range []access.NewUser{
		{Name: "", Password: password},
		{Name: "local", Password: password},
		{Name: "LOCAL", Password: password},
		{Name: "os:root", Password: password},
		{Name: "a b", Password: password},
		{Name: "аlice", Password: password}, // Cyrillic а
		{Name: "-x", Password: password},
		{Name: "a\x00", Password: password},
		{Name: strings.Repeat("a", 101), Password: password},
		{Name: "a'; DROP TABLE pelton.access_user; --", Password: password},
		{Name: "a", Password: "short"},
		{Name: "a", Password: "ääääääääa"},
		{Name: "a", Password: strings.Repeat("a", 1025)},
		{Name: "a", Password: password, Roles: []access.Grant{{Project: "*"}}},
		{Name: "a", Password: password, Roles: []access.Grant{{Role: access.Viewer}}},
		{Name: "a", Password: password, Roles: []access.Grant{{Project: "a b", Role: access.Viewer}}},
		{Name: "a", Password: password, Roles: []access.Grant{{Project: "*", Role: access.Admin + 1}}},
	} {
		var input *access.InputError
		if _, err := s.AddUser(t.Context(), by, u); !errors.As(err, &input) {
			t.Errorf("%+v is a user: %v", u, err)
		}
	}
	if got := audited(t, pool); len(got) != 0 {
		t.Errorf("audit: %q", got)
	}
	if u, err := s.AddUser(t.Context(), by, access.NewUser{Name: "a@b.example", Password: "ääääääääää"}); err != nil {
		t.Errorf("%+v: %v", u, err)
	}
}

// The highest role that covers a project counts, and what has no project needs a role for everything.
func TestRoles(t *testing.T) {
	t.Parallel()
	grants := []access.Grant{everything(access.Viewer), in("etl", access.Operator), in("etl", access.Viewer), in("web", access.Admin)}
	for _, c := range []struct {
		name    string
		actor   access.Actor
		project string
		want    access.Role
	}{
		{"nobody", access.Actor{}, "", access.NoRole},
		{"nobody", access.Actor{}, "etl", access.NoRole},
		{"everything", access.ActorWith(nil, grants...), "", access.Viewer},
		{"everything", access.ActorWith(nil, grants...), "other", access.Viewer},
		{"highest", access.ActorWith(nil, grants...), "etl", access.Operator},
		{"highest", access.ActorWith(nil, grants...), "web", access.Admin},
		{"a project only", access.ActorWith(nil, grants[1:]...), "", access.NoRole},
		{"a project only", access.ActorWith(nil, grants[1:]...), "*", access.NoRole},
		{"a project only", access.ActorWith(nil, grants[1:]...), "other", access.NoRole},
		{"capped role", access.ActorWith(new(everything(access.Operator)), grants...), "web", access.Operator},
		{"capped role", access.ActorWith(new(everything(access.Admin)), grants...), "other", access.Viewer},
		{"capped project", access.ActorWith(new(in("web", access.Operator)), grants...), "web", access.Operator},
		{"capped project", access.ActorWith(new(in("web", access.Operator)), grants...), "etl", access.NoRole},
		{"capped project", access.ActorWith(new(in("web", access.Operator)), grants...), "", access.NoRole},
		{"no project is none's", access.ActorWith(nil, in("", access.Admin)), "", access.NoRole},
		{"a cap gives nothing", access.ActorWith(new(in("web", access.Admin))), "web", access.NoRole},
	} {
		if got := c.actor.Role(c.project); got != c.want {
			t.Errorf("%s: %q: %s, want %s", c.name, c.project, got, c.want)
		}
		for _, role := range []access.Role{access.NoRole, access.Viewer, access.Operator, access.Admin} {
			may := role != access.NoRole && role <= c.want
			if got := c.actor.May(role, c.project); got != may || (c.actor.Check(role, c.project) == nil) != may {
				t.Errorf("%s: %s of %q: %v, want %v", c.name, role, c.project, got, may)
			}
		}
	}
	for _, c := range []struct {
		actor access.Actor
		role  access.Role
		want  string
	}{
		{access.ActorWith(nil, grants...), access.Viewer, "true [etl web]"},
		{access.ActorWith(nil, grants...), access.Operator, "false [etl web]"},
		{access.ActorWith(nil, grants...), access.Admin, "false [web]"},
		{access.ActorWith(new(in("new", access.Viewer)), grants...), access.Viewer, "false [new]"},
		{access.Actor{}, access.Viewer, "false []"},
	} {
		if all, names := c.actor.Projects(c.role); fmt.Sprint(all, " ", names) != c.want {
			t.Errorf("projects: %v %v, want %s", all, names, c.want)
		}
	}
}

// The last admin of everything stays, even if two ask at once that the other goes.
func TestLastAdmin(t *testing.T) {
	t.Parallel()
	forced, pool := newStore(t)
	s, err := access.NewStore(pool, access.Config{})
	if err != nil {
		t.Fatal(err)
	}
	addUser(t, s, "root", everything(access.Admin))
	addUser(t, s, "nearby", in("etl", access.Admin))
	addUser(t, s, "asleep", everything(access.Admin))
	if changed, err := s.Disable(t.Context(), by, "asleep"); err != nil || !changed {
		t.Fatal(changed, err)
	}
	stays := func() {
		t.Helper()
		if _, err := s.Disable(t.Context(), by, "root"); !errors.Is(err, access.ErrLastAdmin) {
			t.Errorf("disabled: %v", err)
		}
		for _, role := range []access.Role{access.NoRole, access.Viewer, access.Operator} {
			if err := s.SetRole(t.Context(), by, "root", everything(role)); !errors.Is(err, access.ErrLastAdmin) {
				t.Errorf("%v: %v", role, err)
			}
		}
		if u, err := s.User(t.Context(), "root"); err != nil || u.DisabledAt != nil || len(u.Roles) != 1 || u.Roles[0] != (access.Grant{Project: access.Everything, Role: access.Admin, Source: "person"}) {
			t.Errorf("%+v, %v", u, err)
		}
	}
	stays()
	if err := s.SetRole(t.Context(), by, "nearby", in("etl", access.NoRole)); err != nil { // no matter of everything
		t.Error(err)
	}
	if _, err := s.Disable(t.Context(), by, "nearby"); err != nil {
		t.Error(err)
	}
	if _, err := s.Enable(t.Context(), by, "asleep"); err != nil {
		t.Error(err)
	}
	// Both have changed their row, or are about to, before either looks for other admins.
	held, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer held.Rollback(context.Background())
	if _, err := held.Exec(t.Context(), `SELECT pg_advisory_xact_lock(hashtextextended('"pelton".access_role', 0))`); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 2)
	for _, name := range []string{"root", "asleep"} {
		go func() {
			_, err := s.Disable(t.Context(), by, name)
			done <- err
		}()
	}
	for waiting := 0; waiting < 2; {
		if err := held.QueryRow(t.Context(), `SELECT count(*) FROM pg_sleep(0.01), pg_locks WHERE locktype = 'advisory' AND NOT granted
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
		if len(done) > 0 {
			t.Fatal("one did not wait for its turn:", <-done)
		}
	}
	if err := held.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if one, two := <-done, <-done; errors.Is(one, access.ErrLastAdmin) == errors.Is(two, access.ErrLastAdmin) {
		t.Errorf("two at once: %v; %v", one, two)
	}
	for _, name := range []string{"root", "asleep"} {
		if _, err := forced.Disable(t.Context(), by, name); err != nil {
			t.Error(err)
		}
	}
	// Where there is none, nothing is kept.
	if err := s.SetRole(t.Context(), by, "root", everything(access.NoRole)); err != nil {
		t.Error(err)
	}
}

func login(t *testing.T, s *access.Store, name string) string {
	t.Helper()
	secret, err := s.Login(t.Context(), name, password, address)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

func TestSessions(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	addUser(t, s, "alice", in("etl", access.Operator))
	secret := login(t, s, "ALICE")
	a, err := s.BySession(t.Context(), secret)
	if err != nil || a.Name != "alice" || a.User == 0 || !a.May(access.Operator, "etl") || a.May(access.Viewer, "") {
		t.Fatalf("actor: %+v, %v", a, err)
	}
	if _, err := s.BySession(t.Context(), secret+"x"); !errors.Is(err, access.ErrNotLoggedIn) {
		t.Errorf("another session: %v", err)
	}
	var stored int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM pelton.access_session s WHERE s::text LIKE '%' || $1 || '%'`, secret).Scan(&stored); err != nil || stored != 0 {
		t.Errorf("the secret is stored: %d, %v", stored, err)
	}
	if list, err := s.SessionList(t.Context(), "alice"); err != nil || len(list) != 1 || list[0].Address != address {
		t.Errorf("sessions: %+v, %v", list, err)
	}
	over := func(what string) {
		t.Helper()
		if _, err := s.BySession(t.Context(), secret); !errors.Is(err, access.ErrNotLoggedIn) {
			t.Errorf("%s: %v", what, err)
		}
	}
	// A role that is taken back is gone at once.
	if err := s.SetRole(t.Context(), by, "alice", in("etl", access.Viewer)); err != nil {
		t.Fatal(err)
	}
	if a, err := s.BySession(t.Context(), secret); err != nil || a.May(access.Operator, "etl") {
		t.Errorf("after the role was taken: %+v, %v", a, err)
	}
	// Idle, and how use keeps it alive: once a minute it is noted.
	mustExec(t, pool, `UPDATE pelton.access_session SET seen_at = now() - interval '12 hours'`)
	over("idle")
	mustExec(t, pool, `UPDATE pelton.access_session SET seen_at = now() - interval '11 hours 59 minutes'`)
	if _, err := s.BySession(t.Context(), secret); err != nil {
		t.Errorf("nearly idle: %v", err)
	}
	seen := func() (at time.Time) {
		t.Helper()
		if err := pool.QueryRow(t.Context(), `SELECT seen_at FROM pelton.access_session`).Scan(&at); err != nil {
			t.Fatal(err)
		}
		return at
	}
	first := seen()
	if _, err := s.BySession(t.Context(), secret); err != nil || time.Since(first) > time.Hour || !seen().Equal(first) {
		t.Errorf("seen at %v, then %v: %v", first, seen(), err)
	}
	mustExec(t, pool, `UPDATE pelton.access_user SET disabled_at = now()`) // without what ends its sessions
	over("of a disabled user")
	mustExec(t, pool, `UPDATE pelton.access_user SET disabled_at = NULL`)
	mustExec(t, pool, `UPDATE pelton.access_session SET expires_at = now()`)
	over("at its end")
	secret = login(t, s, "alice")
	if err := s.EndSession(t.Context(), secret); err != nil {
		t.Error(err)
	}
	over("logout")
	secret = login(t, s, "alice")
	if err := s.SetPassword(t.Context(), by, "alice", password); err != nil {
		t.Error(err)
	}
	over("a new password")
	secret = login(t, s, "alice")
	if _, err := s.Disable(t.Context(), by, "alice"); err != nil {
		t.Error(err)
	}
	over("disabled")
	if _, err := s.Enable(t.Context(), by, "alice"); err != nil {
		t.Error(err)
	}
	over("enabled again")
	if _, err := s.Login(t.Context(), "alice", password, address); err != nil {
		t.Errorf("login when enabled again: %v", err)
	}
}

// A change of a password takes one connection at a time: as many as the pool has, at once, do not wait for each other's second.
func TestChangeOfAPasswordTakesOneConnection(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t, func(c *pgxpool.Config) { c.MaxConns = 1 })
	s, err := access.NewStore(pool, access.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s.Cheap()
	addUser(t, s, "alice", everything(access.Viewer))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if secret, err := s.ChangePassword(ctx, "alice", password, "another horse", address); err != nil || secret == "" {
		t.Errorf("the password was not changed: %v", err)
	}
}

// A password that is changed while somebody logs in with the old one: that session does not begin.
func TestLoginAgainstAChangeOfThePassword(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	addUser(t, s, "alice", everything(access.Viewer))
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.WithoutCancel(t.Context()))
	if _, err := tx.Exec(t.Context(), `UPDATE pelton.access_user SET password = password || 'x'`); err != nil {
		t.Fatal(err)
	}
	result := make(chan error, 1)
	go func() {
		_, err := s.Login(t.Context(), "alice", password, address)
		result <- err
	}()
	pgtest.Eventually(t, patience, func() bool {
		var waiting bool
		err := pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)`).Scan(&waiting)
		return err == nil && waiting
	}, "the login to wait")
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-result; !errors.Is(err, access.ErrLogin) {
		t.Errorf("login with the old password: %v", err)
	}
	var n int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM pelton.access_session`).Scan(&n); err != nil || n != 0 {
		t.Errorf("%d sessions, %v", n, err)
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	addUser(t, s, "alice", everything(access.Operator), in("etl", access.Admin))
	token, secret, err := s.AddToken(t.Context(), by, access.NewToken{User: "Alice", Name: "CI", Role: access.Admin, Project: "etl"})
	if err != nil {
		t.Fatal(err)
	}
	if life := token.ExpiresAt.Sub(token.CreatedAt).Round(time.Hour); life != 90*24*time.Hour || token.User != "alice" || !strings.HasPrefix(secret, "pelton_") {
		t.Errorf("token: %+v lives %v", token, life)
	}
	a, err := s.ByToken(t.Context(), secret)
	if err != nil || a.Name != "alice" || a.Token != token.ID || !a.May(access.Admin, "etl") || a.May(access.Viewer, "") || a.May(access.Viewer, "web") {
		t.Fatalf("actor: %+v, %v", a, err)
	}
	var stored int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM pelton.access_token t WHERE t::text LIKE '%' || $1 || '%'`, secret[7:]).Scan(&stored); err != nil || stored != 0 {
		t.Errorf("the secret is stored: %d, %v", stored, err)
	}
	used := func() *time.Time {
		t.Helper()
		list, err := s.TokenList(t.Context(), access.TokenListParams{User: "alice"})
		if err != nil || len(list) != 1 {
			t.Fatalf("tokens: %+v, %v", list, err)
		}
		return list[0].UsedAt
	}
	first := used()
	if _, err := s.ByToken(t.Context(), secret); err != nil || first == nil || !used().Equal(*first) {
		t.Errorf("used at %v, then %v: %v", first, used(), err)
	}
	mustExec(t, pool, `UPDATE pelton.access_token SET used_at = now() - interval '2 minutes'`)
	if _, err := s.ByToken(t.Context(), secret); err != nil || time.Since(*used()) > time.Minute {
		t.Errorf("used at %v: %v", used(), err)
	}
	refused := func(what, secret string) {
		t.Helper()
		if _, err := s.ByToken(t.Context(), secret); !errors.Is(err, access.ErrNotLoggedIn) {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("another", secret+"x")
	refused("none", "")
	refused("a session's", login(t, s, "alice"))
	if _, err := s.BySession(t.Context(), secret); !errors.Is(err, access.ErrNotLoggedIn) {
		t.Errorf("a token as a session: %v", err)
	}
	if _, err := s.Disable(t.Context(), by, "alice"); err != nil {
		t.Fatal(err)
	}
	refused("of a disabled user", secret)
	if _, err := s.Enable(t.Context(), by, "alice"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ByToken(t.Context(), secret); err != nil {
		t.Errorf("enabled again: %v", err)
	}
	mustExec(t, pool, `UPDATE pelton.access_token SET expires_at = now()`)
	refused("expired", secret)
	if list, err := s.TokenList(t.Context(), access.TokenListParams{}); err != nil || !list[0].Expired {
		t.Errorf("tokens: %+v, %v", list, err)
	}
	mustExec(t, pool, `UPDATE pelton.access_token SET expires_at = now() + interval '1 h'`)
	for _, want := range []bool{true, false} {
		if changed, err := s.RevokeToken(t.Context(), by, token.ID); changed != want || err != nil {
			t.Errorf("revoke: %v, %v", changed, err)
		}
	}
	refused("revoked", secret)
	if _, err := s.RevokeToken(t.Context(), by, token.ID+1); !errors.Is(err, access.ErrNotFound) {
		t.Errorf("revoke nothing: %v", err)
	}
	for _, n := range []access.NewToken{
		{User: "alice"},
		{User: "alice", Name: "a\nb"},
		{User: "alice", Name: "a", Life: time.Second},
		{User: "alice", Name: "a", Life: -time.Hour},
		{User: "alice", Name: "a", Life: 20 * 365 * 24 * time.Hour},
		{User: "alice", Name: "a", Project: "a b"},
		{User: "bob", Name: "a"},
	} {
		if _, _, err := s.AddToken(t.Context(), by, n); err == nil {
			t.Errorf("%+v is a token", n)
		}
	}
	log := strings.Join(audited(t, pool), "\n")
	for _, want := range []string{
		by + fmt.Sprintf(` token.create token %d - {"name": "CI", "role": "admin", "user": "alice", "project": "etl", "expires_at": `, token.ID),
		by + fmt.Sprintf(` token.revoke token %d {"name": "CI", "user": "alice"} -`, token.ID),
	} {
		if strings.Count(log, want) != 1 {
			t.Errorf("audit lacks %q:\n%s", want, log)
		}
	}
	if strings.Contains(log, secret) {
		t.Error("the audit holds the secret")
	}
}

// Poolers need other ways to send statements.
func TestQueryModes(t *testing.T) {
	t.Parallel()
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			pool := schematest.Pool(t, func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = mode })
			s, err := access.NewStore(pool, access.Config{})
			if err != nil {
				t.Fatal(err)
			}
			s.Cheap()
			addUser(t, s, "alice", everything(access.Operator))
			addUser(t, s, "bob")
			if _, err := s.Login(t.Context(), "alice", "wrong password", address); !errors.Is(err, access.ErrLogin) {
				t.Errorf("login: %v", err)
			}
			secret := login(t, s, "alice")
			mustExec(t, pool, `UPDATE pelton.access_session SET seen_at = now() - interval '1 hour'`)
			if a, err := s.BySession(t.Context(), secret); err != nil || !a.May(access.Operator, "") {
				t.Errorf("session: %+v, %v", a, err)
			}
			token, secret, err := s.AddToken(t.Context(), by, access.NewToken{User: "alice", Name: "t"})
			if err != nil {
				t.Fatal(err)
			}
			if a, err := s.ByToken(t.Context(), secret); err != nil || a.Token != token.ID || !a.May(access.Viewer, "") {
				t.Errorf("token: %+v, %v", a, err)
			}
			for what, list := range map[string]func() (int, error){
				"users": func() (int, error) { l, err := s.UserList(t.Context(), access.UserListParams{}); return len(l), err },
				"tokens": func() (int, error) {
					l, err := s.TokenList(t.Context(), access.TokenListParams{})
					return 1 + len(l), err
				},
				"sessions": func() (int, error) { l, err := s.SessionList(t.Context(), "alice"); return 1 + len(l), err },
			} {
				if n, err := list(); n != 2 || err != nil {
					t.Errorf("%s: %d, %v", what, n, err)
				}
			}
			if _, err := s.RevokeToken(t.Context(), by, token.ID); err != nil {
				t.Error(err)
			}
			if err := s.SetPassword(t.Context(), by, "alice", password); err != nil {
				t.Error(err)
			}
			if _, err := s.Disable(t.Context(), by, "alice"); err != nil {
				t.Error(err)
			}
		})
	}
}

// Lists of users and tokens are read by the page: no more than is asked for, by an index in the order of the list, and the pages together are the list.
func TestListsByThePage(t *testing.T) {
	t.Parallel()
	s, pool := newStore(t)
	mustExec(t, pool, `INSERT INTO pelton.access_user (name) SELECT CASE n % 2 WHEN 0 THEN 'User-' ELSE 'user-' END || n FROM generate_series(1, 2000) n`)
	mustExec(t, pool, `INSERT INTO pelton.access_token (user_id, expires_at, name, project, role, hash)
		SELECT id, now() + CASE id % 3 WHEN 0 THEN interval '-1 day' ELSE '1 day' END, 'ci', '*', 'viewer', sha256(name::bytea) FROM pelton.access_user`)
	var names, again []string
	for p := (access.UserListParams{Limit: 300}); ; {
		users, err := s.UserList(t.Context(), p)
		if err != nil || len(users) > p.Limit {
			t.Fatalf("%d users after %q: %v", len(users), p.After, err)
		}
		if len(users) == 0 {
			break
		}
		for _, u := range users {
			names = append(names, strings.ToLower(u.Name))
		}
		p.After = users[len(users)-1].Name
	}
	all, err := s.UserList(t.Context(), access.UserListParams{})
	for _, u := range all {
		again = append(again, strings.ToLower(u.Name))
	}
	if err != nil || len(names) != 2000 || !slices.IsSorted(names) || !slices.Equal(names, again) {
		t.Errorf("%d users by pages, %d at once, %v", len(names), len(again), err)
	}
	if found, err := s.UserList(t.Context(), access.UserListParams{Find: "ER-19", Limit: 3}); err != nil || len(found) != 3 || found[0].Name != "user-19" || found[1].Name != "User-190" {
		t.Errorf("found %+v, %v", found, err)
	}
	last, n := int64(math.MaxInt64), 0
	for p := (access.TokenListParams{Holds: true, Limit: 300}); ; p.Before = last {
		tokens, err := s.TokenList(t.Context(), p)
		if err != nil || len(tokens) > p.Limit {
			t.Fatalf("%d tokens before %d: %v", len(tokens), last, err)
		}
		if len(tokens) == 0 {
			break
		}
		for _, token := range tokens {
			if n++; token.ID >= last || token.Expired {
				t.Fatalf("after token %d: %+v", last, token)
			}
			last = token.ID
		}
	}
	var hold int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM pelton.access_token WHERE expires_at > now()`).Scan(&hold); err != nil || n != hold || hold == 2000 {
		t.Errorf("%d tokens by pages, %d hold, %v", n, hold, err)
	}
	if tokens, err := s.TokenList(t.Context(), access.TokenListParams{User: "USER-7"}); err != nil || len(tokens) != 1 || tokens[0].User != "user-7" {
		t.Errorf("of one user: %+v, %v", tokens, err)
	}
}

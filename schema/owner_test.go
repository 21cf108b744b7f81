package schema_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/schema"
	"github.com/peltonq/pelton/schema/grant"
)

// tablesOwner is a role that is no superuser and has migrated.
const tablesOwner = `tables' "owner"`

// newOwned is an aged database whose tables belong to tablesOwner.
func newOwned(t *testing.T) (dsn string) {
	t.Helper()
	return pgtest.FromTemplate(t, "aged of an owner", func(ctx context.Context, dsn string) error {
		conn, err := pgx.Connect(ctx, dsn)
		if err != nil {
			return err
		}
		owner := pgx.Identifier{tablesOwner}.Sanitize()
		_, err = conn.Exec(ctx, fmt.Sprintf(`CREATE ROLE %[1]s LOGIN; GRANT CREATE ON DATABASE %[2]s TO %[1]s`, owner,
			pgx.Identifier{conn.Config().Database}.Sanitize()))
		if err := errors.Join(err, conn.Close(ctx)); err != nil {
			return err
		}
		dsn = asRole(t, dsn, tablesOwner)
		if err := schema.Up(ctx, dsn, "pelton"); err != nil {
			return err
		}
		pool, err := pgxpool.New(ctx, dsn)
		if err != nil {
			return err
		}
		defer pool.Close()
		fillAged(t, pool)
		return nil
	})
}

// A scheduler that is a member of the tables' owner, and inherits nothing from it, maintains the partitions; what it makes is the owner's, and needs
// no further grants. One that is no member is refused, and so is nobody else hindered.
func TestMaintenanceByAMemberOfTheOwner(t *testing.T) {
	t.Parallel()
	dsn := newOwned(t)
	admin := pgtest.Pool(t, dsn)
	database := admin.Config().ConnConfig.Database
	roles := map[string]*pgxpool.Pool{}
	for name, as := range map[string]grant.Role{"member": grant.Scheduler, "stranger": grant.Scheduler, "enqueuer": grant.Enqueuer, "auditor": grant.Auditor} {
		role := name + " " + database
		quoted := pgx.Identifier{role}.Sanitize()
		mustExec(t, admin, "CREATE ROLE "+quoted+" LOGIN NOINHERIT")
		t.Cleanup(func() {
			if _, err := admin.Exec(context.WithoutCancel(t.Context()), "DROP OWNED BY "+quoted+"; DROP ROLE "+quoted); err != nil {
				t.Error(err)
			}
		})
		statements, err := grant.Statements("pelton", role, as)
		if err != nil {
			t.Fatal(err)
		}
		mustExec(t, admin, strings.Join(statements, ";"))
		if name == "member" {
			mustExec(t, admin, "GRANT "+pgx.Identifier{tablesOwner}.Sanitize()+" TO "+quoted)
		}
		roles[name] = pgtest.Pool(t, asRole(t, dsn, role))
	}
	stranger := newKeeper(t, roles["stranger"], short)
	if _, err := stranger.Maintain(t.Context()); !errors.Is(err, schema.ErrNotOwner) || !strings.Contains(err.Error(), strconv.Quote(tablesOwner)) {
		t.Errorf("maintenance by a stranger: %v", err)
	}
	if err := fmt.Sprint(roles["member"].Exec(t.Context(), "DROP TABLE pelton.job_dead")); !strings.Contains(err, "must be owner") {
		t.Errorf("a member that inherits nothing drops a table: %s", err)
	}
	keeper := newKeeper(t, roles["member"], short)
	report := maintain(t, keeper)
	if len(report.Created) == 0 || len(report.Dropped) == 0 || report.Survivors == 0 || len(report.Postponed) > 0 {
		t.Errorf("maintenance by a member: %+v", report)
	}
	if n := count(t, admin, "pg_class c WHERE c.relnamespace = 'pelton'::regnamespace AND pg_get_userbyid(c.relowner) <> $1", tablesOwner); n != 0 {
		t.Errorf("%d tables and indexes are not the owner's", n)
	}
	id := enqueue(t, roles["enqueuer"])
	if in := partitionOf(t, admin, id); !strings.HasPrefix(in, "job_p_") {
		t.Errorf("a new job went to %q", in)
	}
	if n, all := count(t, roles["auditor"], "pelton.job WHERE args IS NOT NULL"), count(t, admin, "pelton.job"); n != all || n < 2 {
		t.Errorf("the auditor sees %d of %d jobs", n, all)
	}
	mustExec(t, roles["member"], "INSERT INTO pelton.job_attempt (job_id, run, attempt, outcome) VALUES ($1, 1, 1, 'completed')", id)
	// A superuser's maintenance leaves the tables to their owner too.
	maintain(t, newKeeper(t, admin, schema.KeeperConfig{PartitionSize: hour, Ahead: 9, Low: 9, Retention: short.Retention}))
	if n := count(t, admin, "pg_class c WHERE c.relnamespace = 'pelton'::regnamespace AND pg_get_userbyid(c.relowner) <> $1", tablesOwner); n != 0 {
		t.Errorf("%d tables and indexes are not the owner's after a superuser's pass", n)
	}
}

// asRole is an address for another role.
func asRole(t *testing.T, dsn, role string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(role)
	return u.String()
}

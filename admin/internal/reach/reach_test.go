package reach_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/internal/reach"
	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/periodic"
	"github.com/peltonq/pelton/schema/schematest"
)

func TestMain(m *testing.M) { pgtest.Main(m, pgtest.CheckLeaks()) }

const patience = time.Minute

// house has schedules, and people with roles.
type house struct {
	t         *testing.T
	pool      *pgxpool.Pool
	schedules *periodic.Client
	access    *access.Store
}

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{t: t, pool: schematest.Pool(t)}
	logger := slog.New(slog.DiscardHandler)
	queue, err := jobs.NewClient(h.pool, &jobs.Config{Logger: logger})
	must(t, err)
	flows, err := flow.NewClient(h.pool, queue, &flow.Config{Logger: logger})
	must(t, err)
	h.schedules, err = periodic.NewClient(h.pool, queue, flows, &periodic.Config{Logger: logger, SchedulerOff: true})
	must(t, err)
	h.access, err = access.NewStore(h.pool, access.Config{})
	must(t, err)
	return h
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// as makes a user with roles, and returns a context in which they ask.
func (h *house) as(name string, roles ...access.Grant) context.Context {
	h.t.Helper()
	_, err := h.access.AddUser(h.t.Context(), "test", access.NewUser{Name: name, Roles: roles})
	must(h.t, err)
	_, secret, err := h.access.AddToken(h.t.Context(), "test", access.NewToken{User: name, Name: "test", Role: access.Admin})
	must(h.t, err)
	actor, err := h.access.ByToken(h.t.Context(), secret)
	must(h.t, err)
	return access.WithActor(h.t.Context(), actor)
}

func of(name, project string) periodic.Schedule {
	s := periodic.Schedule{Name: name, Cron: "0 3 * * *"}
	if project == "" {
		s.Job = &periodic.JobTarget{Kind: "noop"}
	} else {
		s.Flow = &periodic.FlowTarget{Project: project, Flow: "f"}
	}
	return s
}

// A name belongs to the project of the schedule that has it: who is not admin there neither takes it nor learns whose it is.
func TestNamesOfSchedulesBelongToProjects(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	everything := h.as("root", access.Grant{Project: access.Everything, Role: access.Admin})
	ann := h.as("ann", access.Grant{Project: "a", Role: access.Admin})
	both := h.as("bob", access.Grant{Project: "a", Role: access.Admin}, access.Grant{Project: "b", Role: access.Operator})
	nobody := h.as("carol")
	made := map[string]*periodic.Edition{}
	for name, project := range map[string]string{"of-a": "a", "of-b": "b", "plain": ""} {
		result, err := reach.PutSchedule(everything, h.schedules, of(name, project), &periodic.Edition{})
		must(t, err)
		if result.Change != periodic.Created {
			t.Errorf("%s: %s", name, result.Change)
		}
		edition := result.Schedule.Edition()
		made[name] = &edition
	}
	changed := of("of-a", "a")
	changed.Cron = "0 4 * * *"
	for what, c := range map[string]struct {
		ctx  context.Context //nolint:containedctx // of a case
		s    periodic.Schedule
		seen *periodic.Edition
		want error
	}{
		"another project's name":          {ann, of("of-b", "a"), nil, reach.ErrTaken},
		"its name and version":            {ann, of("of-b", "a"), made["of-b"], reach.ErrTaken},
		"the name of one of no project":   {ann, of("plain", "a"), nil, reach.ErrTaken},
		"into another project":            {ann, of("of-a", "b"), nil, access.ErrForbidden},
		"into none":                       {ann, of("of-a", ""), nil, access.ErrForbidden},
		"one that is seen, and not ruled": {both, of("of-b", "a"), nil, access.ErrForbidden},
		"without any role":                {nobody, of("new", "a"), nil, access.ErrForbidden},
		"a new one where one is":          {ann, changed, &periodic.Edition{}, reach.ErrTaken},
		"one's own":                       {ann, changed, made["of-a"], nil},
		"new":                             {ann, of("new", "a"), nil, nil},
		"all may be changed":              {everything, of("plain", "b"), nil, nil},
	} {
		_, err := reach.PutSchedule(c.ctx, h.schedules, c.s, c.seen)
		if !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
		if errors.Is(err, reach.ErrTaken) && err.Error() != reach.ErrTaken.Error() {
			t.Errorf("%s: %q tells more than that the name is taken", what, err)
		}
	}
	if _, err := reach.PutSchedule(ann, h.schedules, changed, made["of-a"]); !isEdition(err) {
		t.Errorf("a version that is old: %v", err)
	}
	e, err := h.schedules.Get(t.Context(), "of-b")
	must(t, err)
	if e.Project() != "b" || e.Version != 1 {
		t.Errorf("the schedule of b is of %q, version %d", e.Project(), e.Version)
	}
	// What is not to be seen and what is not there sound alike.
	_, hidden := reach.Schedule(ann, h.schedules, "of-b", access.Viewer)
	_, missing := reach.Schedule(ann, h.schedules, "of-x", access.Viewer)
	if hidden == nil || missing == nil || strings.ReplaceAll(hidden.Error(), "of-b", "of-x") != missing.Error() || !errors.Is(hidden, periodic.ErrNotFound) {
		t.Errorf("hidden: %v; missing: %v", hidden, missing)
	}
	if _, err := reach.Schedule(nobody, h.schedules, "of-b", access.Viewer); !errors.Is(err, access.ErrForbidden) {
		t.Errorf("without any role: %v", err)
	}
}

func isEdition(err error) bool {
	_, is := errors.AsType[*periodic.EditionError](err)
	return is
}

// A schedule that goes into another project while it is being changed is not changed by who has no role there.
func TestAScheduleThatGoesIntoAnotherProjectMeanwhile(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	ann := h.as("ann", access.Grant{Project: "a", Role: access.Admin})
	_, err := reach.PutSchedule(ann, h.schedules, of("s", "a"), nil)
	must(t, err)
	tx, err := h.pool.Begin(t.Context())
	must(t, err)
	defer tx.Rollback(context.WithoutCancel(t.Context()))
	_, err = h.schedules.PutTx(t.Context(), tx, of("s", "b"))
	must(t, err)
	done := make(chan error, 1)
	go func() {
		mine := of("s", "a")
		mine.Cron = "0 5 * * *"
		_, err := reach.PutSchedule(ann, h.schedules, mine, nil)
		done <- err
	}()
	pgtest.Eventually(t, patience, func() bool {
		var waits bool
		err := h.pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')`).Scan(&waits)
		return err == nil && waits
	}, "the put to wait for the schedule")
	must(t, tx.Commit(t.Context()))
	if err := <-done; !errors.Is(err, reach.ErrTaken) {
		t.Errorf("the put says %v", err)
	}
	e, err := h.schedules.Get(t.Context(), "s")
	must(t, err)
	if e.Project() != "b" {
		t.Errorf("the schedule is of project %q", e.Project())
	}
}

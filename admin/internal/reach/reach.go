// Package reach has the rules that the page and the API share about what belongs to projects: who finds a run or a schedule, and who may store a
// schedule under a name.
//
// To who has no role in a project it is as if nothing of it were there. Names of schedules are one list for all projects, so one thing is told: that a
// name is taken.
package reach

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/periodic"
)

// ErrTaken says that the name of a schedule belongs to another one, maybe of a project that is not to be seen.
var ErrTaken = errors.New("the name is taken")

// Sees tells whether the context's actor may know of what belongs to a project; "": to none.
func Sees(ctx context.Context, project string) bool {
	actor, _ := access.FromContext(ctx)
	return actor.May(access.Viewer, project)
}

// somewhere is access.ErrForbidden for an actor who has no role at all.
func somewhere(ctx context.Context, role access.Role) error {
	if actor, _ := access.FromContext(ctx); !actor.Anything() {
		return access.Check(ctx, role, "")
	}
	return nil
}

// Run finds a run for whose project the context's actor has a role. flow.ErrNotFound: there is none that they may see.
func Run(ctx context.Context, flows *flow.Client, id int64, role access.Role) (*flow.RunRow, error) {
	if err := somewhere(ctx, role); err != nil {
		return nil, err
	}
	runs, err := flows.Runs(ctx, flow.RunFilter{IDs: []int64{id}}, 1)
	if err != nil {
		return nil, err
	}
	if len(runs) == 0 || !Sees(ctx, runs[0].Project) {
		return nil, fmt.Errorf("there is no run %d: %w", id, flow.ErrNotFound)
	}
	return &runs[0], access.Check(ctx, role, runs[0].Project)
}

// Schedule finds a schedule for whose project the context's actor has a role. periodic.ErrNotFound: there is none that they may see; what may have been
// meant is told only to who sees all names.
func Schedule(ctx context.Context, schedules *periodic.Client, name string, role access.Role) (*periodic.Entry, error) {
	if err := somewhere(ctx, role); err != nil {
		return nil, err
	}
	e, err := schedules.Get(ctx, name)
	switch {
	case err == nil && !Sees(ctx, e.Project()), errors.Is(err, periodic.ErrNotFound) && !Sees(ctx, ""):
		return nil, fmt.Errorf("there is no schedule %q that you may see (%w)", name, periodic.ErrNotFound)
	case err != nil:
		return nil, err
	}
	return e, access.Check(ctx, role, e.Project())
}

// puts bounds how often a put begins anew because the schedule is changed by others.
const puts = 5

// PutSchedule stores a schedule. The context's actor must be admin of the project that it is to belong to, and of that of the schedule which has the name now:
// to who may not see that one, the name is taken. seen is the edition that they have seen, zero for a schedule that is
// to be new; nil: whichever there is. Both roles hold for what is changed in the end, not only for what was read before. Errors: access.ErrForbidden, ErrTaken, a
// *periodic.EditionError, and those of periodic.Client.Put.
func PutSchedule(ctx context.Context, schedules *periodic.Client, s periodic.Schedule, seen *periodic.Edition) (*periodic.PutResult, error) {
	none := periodic.Edition{}
	if err := access.Check(ctx, access.Admin, s.Project()); err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		there, err := mayReplace(ctx, schedules, s.Name)
		if err != nil {
			return nil, err
		}
		switch {
		case seen == nil || *seen == there:
		case *seen == none:
			return nil, ErrTaken
		default:
			return nil, &periodic.EditionError{Name: s.Name, Wanted: *seen, Found: there}
		}
		result, err := schedules.PutIf(ctx, s, there)
		changed, is := errors.AsType[*periodic.EditionError](err)
		switch {
		case is && seen == nil && try < puts:
			continue
		case is && seen != nil && *seen == none:
			return nil, ErrTaken
		case is:
			return nil, changed
		}
		return result, err
	}
}

// mayReplace is the edition of the schedule of a name, if the actor may change it; zero: there is none.
func mayReplace(ctx context.Context, schedules *periodic.Client, name string) (there periodic.Edition, err error) {
	e, err := schedules.Get(ctx, name)
	switch {
	case errors.Is(err, periodic.ErrNotFound):
		return there, nil
	case err != nil:
		return there, err
	case !Sees(ctx, e.Project()):
		return there, ErrTaken
	}
	return e.Edition(), access.Check(ctx, access.Admin, e.Project())
}

// Storable tells whether the database can hold texts: UTF-8 without NUL.
func Storable(texts ...string) bool {
	return !slices.ContainsFunc(texts, func(t string) bool { return !utf8.ValidString(t) || strings.ContainsRune(t, 0) })
}

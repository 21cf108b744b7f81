package flow

import (
	"context"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/internal/quantity"
	"github.com/peltonq/pelton/jobs/flow/internal/bundle"
	"github.com/peltonq/pelton/jobs/flow/internal/draft"
	"github.com/peltonq/pelton/jobs/flow/internal/graph"
	"github.com/peltonq/pelton/jobs/flow/internal/nodecmd"
	"github.com/peltonq/pelton/jobs/flow/internal/notice"
	"github.com/peltonq/pelton/jobs/flow/internal/project"
	"github.com/peltonq/pelton/jobs/flow/internal/store"
)

// PushReport is what became of an upload.
type PushReport struct {
	Version *Version `json:"version,omitempty"` // nil: nothing was stored
	Format  string   `json:"format,omitempty"`
	Flows   []string `json:"flows,omitempty"`
	Nodes   int      `json:"nodes"`
	Faults  []Fault  `json:"faults"` // all of them
	Notes   []Fault  `json:"notes"`

	// Triggers are the schedules that the flows' own triggers name, Quartz expressions by flow. A push starts none of them.
	Triggers map[string]string `json:"triggers,omitempty"`
}

// FaultsError says that an upload has faults, all of which it lists. Nothing was stored.
type FaultsError struct {
	Project string
	Faults  []Fault
}

func (e *FaultsError) Error() string {
	var b strings.Builder
	who := "the upload"
	if e.Project != "" {
		who = fmt.Sprintf("project %q", e.Project)
	}
	fmt.Fprintf(&b, "%s has %s; nothing was stored", who, quantity.Say(len(e.Faults), "a fault", "%d faults"))
	for _, f := range e.Faults {
		b.WriteString("\n  " + f.String())
	}
	return b.String()
}

// InputError says that what was given cannot be pushed at all: a name that no project can have, or a path where no zip or directory can be read.
type InputError struct{ Err error }

func (e *InputError) Error() string { return e.Err.Error() }
func (e *InputError) Unwrap() error { return e.Err }

var projectName = regexp.MustCompile(`\A[a-zA-Z0-9][a-zA-Z0-9_.-]{0,63}\z`)

// CheckProjectName says what is wrong with the name of a project, as an *InputError.
func CheckProjectName(name string) error {
	if !projectName.MatchString(name) {
		return &InputError{fmt.Errorf("project name %q: want up to 64 letters, digits, _ . or -, the first a letter or digit", name)}
	}
	return nil
}

// InPush is what others do in the transaction of a push, as to keep what depends on the project's flows in step. An error undoes the push with it.
// Functions that are nil do nothing. The report is that of the push.
type InPush struct {
	// Lock comes before the project's row is locked, so that who locks both, as a schedule that starts a run does, does so in one order.
	Lock func(ctx context.Context, tx pgx.Tx, report *PushReport) error

	// Then comes when the version is stored.
	Then func(ctx context.Context, tx pgx.Tx, report *PushReport) error
}

// Check reads the zip or directory at path and reports all that is wrong with it, and what its author may not expect. Nothing is
// stored. With any fault the error is a *FaultsError; the report has them too.
func (c *Client) Check(ctx context.Context, path string) (*PushReport, error) {
	return c.push(ctx, "", path, false, nil)
}

// Push reads the zip or directory at path and stores it as the next version of the project, which is made if it is new. With any
// fault nothing is stored, and the error is a *FaultsError; the report has them too.
func (c *Client) Push(ctx context.Context, name, path string, with ...InPush) (*PushReport, error) {
	if err := CheckProjectName(name); err != nil {
		return nil, err
	}
	return c.push(ctx, name, path, true, with)
}

// CheckZip is Check of a zip of so many bytes that is open already.
func (c *Client) CheckZip(ctx context.Context, zip io.ReaderAt, size int64) (*PushReport, error) {
	return c.pushZip(ctx, "", zip, size, false, nil)
}

// PushZip is Push of a zip of so many bytes that is open already.
func (c *Client) PushZip(ctx context.Context, name string, zip io.ReaderAt, size int64, with ...InPush) (*PushReport, error) {
	if err := CheckProjectName(name); err != nil {
		return nil, err
	}
	return c.pushZip(ctx, name, zip, size, true, with)
}

func (c *Client) pushZip(ctx context.Context, name string, zip io.ReaderAt, size int64, keep bool, with []InPush) (*PushReport, error) {
	b, unreadable, err := bundle.Zip(zip, size, bundle.Limits{})
	if err != nil {
		return nil, &InputError{fmt.Errorf("read the zip: %w", err)}
	}
	return c.pushBundle(ctx, name, b, unreadable, keep, with)
}

func (c *Client) push(ctx context.Context, name, path string, keep bool, with []InPush) (*PushReport, error) {
	b, unreadable, err := bundle.Open(path, bundle.Limits{})
	if err != nil {
		return nil, &InputError{fmt.Errorf("read %s: %w", path, err)}
	}
	return c.pushBundle(ctx, name, b, unreadable, keep, with)
}

// pushBundle closes the bundle, which is nil if there is nothing to read.
func (c *Client) pushBundle(ctx context.Context, name string, b *bundle.Bundle, unreadable []Fault, keep bool, with []InPush) (*PushReport, error) {
	report := &PushReport{Faults: append([]Fault{}, unreadable...), Notes: []Fault{}}
	if b == nil {
		return report, &FaultsError{name, report.Faults}
	}
	defer b.Close() //nolint:errcheck // only read
	types, kinds, err := c.types(ctx)
	if err != nil {
		return nil, err
	}
	p, faults, notes := project.Read(b, project.Options{
		Types: types, Kinds: kinds, MaxXms: c.heaps.xms, MaxXmx: c.heaps.xmx, CheckTrigger: c.config.CheckTrigger,
	})
	report.Faults, report.Notes = draft.Sorted(append(report.Faults, faults...)), append(report.Notes, notes...)
	if len(report.Faults) > 0 {
		return report, &FaultsError{name, report.Faults}
	}
	c.mapTypes(p)
	report.describe(p)
	if !keep {
		return report, nil
	}
	push := store.Push{Project: name, By: c.jobs.Actor(ctx), Audited: c.jobs.AuditedActor(ctx), Graphs: p, Notes: notes}
	files := make(map[string]*bundle.File, len(b.Files))
	for i := range b.Files {
		f := &b.Files[i]
		files[f.Path] = f
		push.Files = append(push.Files, store.File{Path: f.Path, Hash: f.SHA256[:], Bytes: f.Size, Executable: f.Mode&0o100 != 0})
	}
	push.Open = func(path string) (io.ReadCloser, error) { return files[path].Open() }
	return c.keep(ctx, push, report, with)
}

// PushFlows stores flows that were built in code as the next version of a project, which is made if it is new. The project's flows
// are those given, and no others: one that is left out is not in the new version. Types of nodes are checked and mapped as by Push, and faults
// are a *FaultsError; only those that Job added may be of a kind that nobody works yet.
func (c *Client) PushFlows(ctx context.Context, name string, flows ...*Flow) (*PushReport, error) {
	if err := CheckProjectName(name); err != nil {
		return nil, err
	}
	p := &graph.Project{Format: graph.FormatCode}
	known := map[string]bool{}
	for _, f := range flows {
		if known[f.Name()] {
			return nil, fmt.Errorf("push project %q: flow %q is given twice", name, f.Name())
		}
		known[f.Name()] = true
		own := *f.graph // which others may push too
		own.Nodes = slices.Clone(own.Nodes)
		p.Flows = append(p.Flows, &own)
	}
	if len(flows) == 0 {
		return nil, fmt.Errorf("push project %q: no flows", name)
	}
	report := &PushReport{Faults: []Fault{}, Notes: []Fault{}}
	types, _, err := c.types(ctx)
	if err != nil {
		return nil, err
	}
	rules, unknown := draft.Rules{Types: types}, draft.Unknown{}
	for _, f := range p.Flows {
		for i := range f.Nodes {
			n := &f.Nodes[i]
			if n.Args != nil {
				continue
			}
			unknown.Add(rules, n.Type, Fault{File: f.Name, Node: n.Path})
			if c.config.Types[n.Type] != "" || draft.BuiltIn(n.Type) {
				continue
			}
			for _, reason := range draft.KindSecrets(f, i) {
				report.Faults = append(report.Faults, Fault{File: f.Name, Node: n.Path, Reason: reason})
			}
		}
	}
	report.Faults = append(report.Faults, unknown.Faults(rules)...)
	if len(report.Faults) > 0 {
		return report, &FaultsError{name, report.Faults}
	}
	c.mapTypes(p)
	report.describe(p)
	return c.keep(ctx, store.Push{Project: name, By: c.jobs.Actor(ctx), Audited: c.jobs.AuditedActor(ctx), Graphs: p}, report, nil)
}

// mapTypes gives nodes of mapped types their commands, so that a version keeps those of its push.
func (c *Client) mapTypes(p *graph.Project) {
	for _, f := range p.Flows {
		for i := range f.Nodes {
			if n := &f.Nodes[i]; n.Args == nil {
				n.Template = c.config.Types[n.Type]
			}
		}
	}
}

// keep stores a version, and does what others do with it.
func (c *Client) keep(ctx context.Context, push store.Push, report *PushReport, with []InPush) (*PushReport, error) {
	push.Lock = func(ctx context.Context, tx pgx.Tx) error {
		for _, w := range with {
			if w.Lock == nil {
				continue
			}
			if err := w.Lock(ctx, tx, report); err != nil {
				return err
			}
		}
		return nil
	}
	push.Then = func(ctx context.Context, tx pgx.Tx, v Version) error {
		stored := *report
		stored.Version = &v
		for _, w := range with {
			if w.Then == nil {
				continue
			}
			if err := w.Then(ctx, tx, &stored); err != nil {
				return err
			}
		}
		return nil
	}
	v, err := c.store.Push(ctx, push)
	if err != nil {
		return report, err
	}
	report.Version = &v
	return report, nil
}

func (r *PushReport) describe(p *graph.Project) {
	r.Format = p.Format
	for _, f := range p.Flows {
		r.Flows = append(r.Flows, f.Name)
		r.Nodes += len(f.Nodes)
		if f.Trigger != nil && f.Trigger.Schedule != "" {
			if r.Triggers == nil {
				r.Triggers = map[string]string{}
			}
			r.Triggers[f.Name] = f.Trigger.Schedule
		}
	}
	slices.Sort(r.Flows)
}

// types are the types that nodes may have beside the built-in ones: mapped ones, and job kinds that somebody works. kinds are those that are not
// mapped.
func (c *Client) types(ctx context.Context) (types, kinds []string, err error) {
	worked, err := c.store.Kinds(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("list job kinds: %w", err)
	}
	kinds = slices.DeleteFunc(slices.Concat(c.config.Kinds, worked), func(kind string) bool {
		return c.config.Types[kind] != "" || kind == nodecmd.Kind || kind == notice.Kind // those are the engine's
	})
	return slices.Concat(slices.Collect(maps.Keys(c.config.Types)), kinds), kinds, nil
}

package flow

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/peltonq/pelton/jobs/flow/internal/store"
)

// programKeys are the parameters that say which program a node runs, and with what around it; a key that ends with a dot stands for all that begin so.
var programKeys = []string{"command", "command.", "env.", "working.dir", "java.class", "classpath", "jvm.args", "main.args", "type"}

// argKeys are those of a single node that is a job of kind "command": args that the node itself does not give.
var argKeys = []string{"commands", "dir", "env", "shell"}

// Reprograms lists the parameters of a run by which its nodes would run other programs than the ones that were pushed, as NODE:NAME or NAME, in order:
// their commands, environment, directory, Java class and its arguments. Whoever may start runs but not push projects should not set these: a
// program reads the secrets of its project.
func (o *Options) Reprograms() (names []string) {
	for name := range o.Params {
		if reprograms(name) {
			names = append(names, name)
		}
	}
	for node, params := range o.NodeParams {
		for name := range params {
			if reprograms(name) || slices.Contains(argKeys, name) {
				names = append(names, node+":"+name)
			}
		}
	}
	slices.Sort(names)
	return names
}

func reprograms(name string) bool {
	return slices.ContainsFunc(programKeys, func(key string) bool {
		return name == key || strings.HasSuffix(key, ".") && strings.HasPrefix(name, key)
	})
}

// Beyond says what of a run is for those who may push its project, and not for all who may start its runs; empty: nothing. These are programs that were not pushed
// (Options.Reprograms), and targets of notices that the flow does not name, since the executor that sends a notice may reach servers that the
// starter cannot. Errors: ErrNotFound.
func (c *Client) Beyond(ctx context.Context, p RunParams) (what string, err error) {
	if names := p.Options.Reprograms(); len(names) > 0 {
		return strings.Join(names, ", ") + " would change which programs run", nil
	}
	targets, err := c.foreignTargets(ctx, p)
	if err != nil {
		return "", fmt.Errorf("run flow %s/%s: %w", p.Project, p.Flow, err)
	}
	if len(targets) > 0 {
		return "notices would go to " + strings.Join(targets, ", ") + ", whom the flow does not name", nil
	}
	return "", nil
}

// foreignTargets are whom a run would tell that the flow, as it was pushed, does not name, in order: targets of the options' Notify, and those that the
// options' parameters make of the flow's own lists.
func (c *Client) foreignTargets(ctx context.Context, p RunParams) ([]string, error) {
	n := p.Options.Notify
	targets := slices.Concat(n.Success, n.Failure, n.FirstFailure)
	if len(targets) == 0 && len(p.Options.Params) == 0 {
		return nil, nil
	}
	version, err := c.store.Version(ctx, c.pool, p.Project, p.Version)
	if err != nil {
		return nil, notFound(err, "project %q has no version %d", p.Project, p.Version)
	}
	made, err := c.plan(ctx, c.pool, version.ID, p.Flow)
	if err != nil {
		return nil, notFound(err, "version %d of project %q has no flow %q", version.No, p.Project, p.Flow)
	}
	g := made.Flow()
	l := &loaded{graph: g, global: c.config.Params, run: store.Run{Project: p.Project, Version: version.No, Flow: p.Flow, Format: version.Format}}
	listed := func() []string {
		return l.listed(func(string, error) {}, g.Opts.SuccessEmails, g.Opts.FailureEmails, g.Opts.NotifyEmails)
	}
	named := listed()
	l.options = p.Options
	targets = slices.DeleteFunc(append(targets, listed()...), func(to string) bool { return slices.Contains(named, to) })
	slices.Sort(targets)
	return slices.Compact(targets), nil
}

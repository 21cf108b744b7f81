package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/peltonq/pelton/internal/quantity"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/periodic"
)

func (a *app) flow() *cobra.Command {
	return parent(&cobra.Command{Use: "flow", Short: "Push projects, run their flows, operate on runs", GroupID: groupOperate},
		a.flowPush(), a.flowList(), a.flowVersions(), a.flowRun(), a.flowShow(), a.flowWhy(), a.flowRuns(), a.flowLogs(), a.flowGraph(),
		a.flowKill(), a.flowPause(), a.flowResume(), a.flowRetry(), a.flowRerun(), a.flowSucceed())
}

// withFlows is withClient with a client for flows.
func (a *app) withFlows(ctx context.Context, s flowSettings, do func(ctx context.Context, db database, flows *flow.Client) error) error {
	config, err := s.config()
	if err != nil {
		return err
	}
	config.Logger, config.SchedulerOff, config.Observer = a.logger(levelQuiet), true, a.tracer.Flows()
	return a.withClient(ctx, func(ctx context.Context, db database) error {
		flows, err := flow.NewClient(db.pool, db.client, config)
		if err != nil {
			return usage(err)
		}
		return flowError(do(ctx, db, flows))
	})
}

// flowError sorts errors of package flow by exit code.
func flowError(err error) error {
	var faults *flow.FaultsError
	var input *flow.InputError
	switch {
	case errors.Is(err, flow.ErrRunning), errors.Is(err, flow.ErrEnded), errors.Is(err, flow.ErrLive), errors.Is(err, flow.ErrRefused):
		return refused(err)
	case errors.As(err, &faults), errors.As(err, &input):
		return usage(err)
	}
	return err
}

// flowSettings are what an installation says of all flows.
type flowSettings struct {
	types, params  []string
	maxXms, maxXmx string
	checkTrigger   func(expression string) error
}

// pushFlags are those that a push must know. A version keeps the commands of its types, so nobody else need know these.
func (s *flowSettings) pushFlags(f *pflag.FlagSet) {
	f.StringArrayVar(&s.types, "flow-type", nil,
		"a type of nodes beside the built-in ones: `TYPE=COMMAND` runs a command in which parameters are resolved, TYPE alone is a job kind; may be repeated")
	s.heapFlags(f)
}

func (s *flowSettings) heapFlags(f *pflag.FlagSet) {
	f.StringVar(&s.maxXms, "flow-max-xms", "", "largest `size` that a node may ask for as Xms, as 512M (default 1G)")
	f.StringVar(&s.maxXmx, "flow-max-xmx", "", "largest `size` that a node may ask for as Xmx, as 4G (default 2G)")
}

// flags are those of whoever advances runs.
func (s *flowSettings) flags(f *pflag.FlagSet) {
	s.heapFlags(f)
	f.StringArrayVar(&s.params, "flow-param", nil, "parameter `NAME=VALUE` for the nodes of all flows, weaker than any other; may be repeated")
}

// config reads the flags. TYPE=TEMPLATE maps a type to a command, TYPE alone is a job kind that somebody will work.
func (s *flowSettings) config() (*flow.Config, error) {
	c := &flow.Config{Types: map[string]string{}, Params: map[string]string{}, MaxXms: s.maxXms, MaxXmx: s.maxXmx, CheckTrigger: s.checkTrigger}
	for _, text := range s.types {
		name, template, is := strings.Cut(text, "=")
		switch {
		case name == "" || is && strings.TrimSpace(template) == "":
			return nil, usagef("--flow-type %q: want TYPE=COMMAND, as in 'hive=beeline -f ${hive.script}', or a job kind", text)
		case is:
			c.Types[name] = template
		default:
			c.Kinds = append(c.Kinds, name)
		}
	}
	for _, text := range s.params {
		name, value, is := strings.Cut(text, "=")
		if !is || name == "" {
			return nil, usagef("--flow-param %q: want NAME=VALUE", text)
		}
		c.Params[name] = value
	}
	return c, nil
}

// parseFlow reads PROJECT/FLOW.
func parseFlow(text string) (project, name string, err error) {
	project, name, ok := strings.Cut(text, "/")
	if !ok || project == "" || name == "" {
		return "", "", usagef("%q names no flow: want PROJECT/FLOW, as flow list prints them", text)
	}
	return project, name, nil
}

func parseRun(text string) (int64, error) {
	run, err := strconv.ParseInt(text, 10, 64)
	if err != nil || run < 1 {
		return 0, usagef("%q is not a run: want a number, as flow run and flow runs print it", text)
	}
	return run, nil
}

func (a *app) flowPush() *cobra.Command {
	var project string
	var check bool
	var settings flowSettings
	var triggers triggerFlags
	cmd := &cobra.Command{
		Use:   "push PATH --project P",
		Short: "Store a project, a zip or a directory, as its next version",
		Long: `Store the project in a zip or a directory (Azkaban Flow 2.0 or 1.0) as the next version. Runs that were started keep theirs. All
that is wrong with it is reported at once, and then nothing is stored. What may behave otherwise than its author thinks is reported too.
With --check nothing is stored in any case.

With --with-schedule the schedule of a flow's trigger becomes a schedule PROJECT/FLOW in the time zone of --tz; a later push changes its times, and
pauses it when the trigger is gone.`,
		Example: "  pelton flow push ./etl --project etl\n  pelton flow push etl.zip --project etl --check\n  pelton flow push ./etl --project etl --with-schedule --tz Europe/Berlin",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: brief(func(ctx context.Context, args []string) error {
			if project == "" && !check {
				return usagef("--project is missing: the name of the project that PATH is a version of")
			}
			if project != "" {
				if err := flow.CheckProjectName(project); err != nil {
					return usage(err)
				}
			}
			if err := triggers.validate(); err != nil {
				return err
			}
			if triggers.with {
				settings.checkTrigger = periodic.CheckTrigger
			}
			return a.withFlows(ctx, settings, func(ctx context.Context, db database, flows *flow.Client) error {
				if _, err := os.Stat(args[0]); err != nil {
					return usage(err)
				}
				return a.push(ctx, db, flows, triggers, project, args[0], check)
			})
		}),
	}
	triggers.flags(cmd.Flags())
	cmd.Flags().StringVarP(&project, "project", "p", "", "`name` of the project")
	cmd.Flags().BoolVar(&check, "check", false, "report only, store nothing")
	settings.pushFlags(cmd.Flags())
	return cmd
}

func (a *app) printPush(project string, t triggerFlags, p pushed, err error) error {
	report := p.PushReport
	if report == nil || err != nil && len(report.Faults) == 0 {
		return err
	}
	if t.with {
		dropTriggerNotes(report)
	}
	if a.json {
		if printErr := a.document(p, nil); printErr != nil {
			return printErr
		}
		return err
	}
	for _, n := range report.Notes {
		fmt.Fprintf(a.stderr, "note: %s\n", n)
	}
	for _, s := range p.Stranded {
		fmt.Fprintf(a.stderr, "note: %s\n", s)
	}
	if err != nil {
		return err
	}
	size := quantity.Of(len(report.Flows), "flow") + ", " + quantity.Of(report.Nodes, "node")
	if report.Version == nil {
		fmt.Fprintf(a.stdout, "no faults: %s; nothing was stored\n", size)
		return nil
	}
	fmt.Fprintf(a.stdout, "project %s, version %d: %s\n", project, report.Version.No, size)
	const most = 20
	for i, name := range report.Flows {
		if i == most {
			fmt.Fprintf(a.stdout, "  and %d more: pelton flow list --project %s\n", len(report.Flows)-most, project)
			break
		}
		fmt.Fprintf(a.stdout, "  %s/%s\n", project, name)
	}
	for i := range p.Schedules {
		fmt.Fprintf(a.stdout, "schedule %s: %s\n", p.Schedules[i].Name, changeWords(&p.Schedules[i]))
	}
	return nil
}

func (a *app) flowList() *cobra.Command {
	var project string
	cmd := &cobra.Command{
		Use: "list", Short: "List the flows of the newest versions, with their last runs", Args: arguments(cobra.NoArgs),
		RunE: brief(func(ctx context.Context, _ []string) error {
			return a.withFlows(ctx, flowSettings{}, func(ctx context.Context, _ database, flows *flow.Client) error {
				entries, err := flows.Flows(ctx, project)
				if err != nil {
					return err
				}
				return list(a, "FLOW VERSION NODES LAST-RUN STATUS STARTED", entries, func(e flow.Entry) []any {
					last, status := "-", "-"
					if e.LastRun != nil {
						last, status = strconv.FormatInt(*e.LastRun, 10), *e.Status
					}
					return []any{e.Project + "/" + e.Flow, e.Version, e.Nodes, last, status, optionalMoment(e.StartedAt)}
				})
			})
		}),
	}
	cmd.Flags().StringVarP(&project, "project", "p", "", "only of this project")
	return cmd
}

func (a *app) flowVersions() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "versions [PROJECT]", Short: "List pushed versions, the newest first; with --json also the notes of their pushes", Args: arguments(cobra.MaximumNArgs(1)),
		RunE: brief(func(ctx context.Context, args []string) error {
			return a.withFlows(ctx, flowSettings{}, func(ctx context.Context, _ database, flows *flow.Client) error {
				versions, err := flows.Versions(ctx, strings.Join(args, ""), limit)
				if err != nil {
					return err
				}
				return list(a, "PROJECT VERSION PUSHED BY FORMAT FLOWS FILES BYTES NOTES", versions, func(v flow.Version) []any {
					return []any{v.Project, v.No, moment(v.PushedAt), v.PushedBy, v.Format, v.Flows, v.Files, v.Bytes, len(v.Notes)}
				})
			})
		}),
	}
	cmd.Flags().IntVar(&limit, "limit", 50, "at most so many")
	return cmd
}

func (a *app) flowGraph() *cobra.Command {
	var file string
	var version int
	cmd := &cobra.Command{
		Use:     "graph PROJECT/FLOW|RUN --svg FILE",
		Short:   "Draw a flow, or a run with its statuses",
		Example: "  pelton flow graph etl/nightly --svg nightly.svg\n  pelton flow graph 17 --svg run.svg",
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: brief(func(ctx context.Context, args []string) error {
			if file == "" {
				return usagef("--svg is missing: the file to write, or - for stdout")
			}
			return a.withFlows(ctx, flowSettings{}, func(ctx context.Context, _ database, flows *flow.Client) error {
				var picture strings.Builder
				if run, err := strconv.ParseInt(args[0], 10, 64); err == nil {
					if err := flows.RunSVG(ctx, &picture, run); err != nil {
						return err
					}
					return a.picture(file, picture.String())
				}
				project, name, err := parseFlow(args[0])
				if err != nil {
					return err
				}
				if err := flows.SVG(ctx, &picture, project, name, version); err != nil {
					return err
				}
				return a.picture(file, picture.String())
			})
		}),
	}
	cmd.Flags().StringVar(&file, "svg", "", "`file` to write; - is stdout")
	cmd.Flags().IntVar(&version, "version", 0, "of the project (default: the newest)")
	return cmd
}

// picture writes a picture to a file, or to stdout if its name is -; with --json it says so in a document, or that is the picture.
func (a *app) picture(name, svg string) error {
	if name == "-" {
		return a.document(map[string]string{"svg": svg}, func(w io.Writer) { fmt.Fprint(w, svg) })
	}
	if err := os.WriteFile(name, []byte(svg), 0o666); err != nil { //nolint:gosec // the user's umask decides
		return fmt.Errorf("write the picture: %w", err)
	}
	return a.document(map[string]string{"file": name}, func(io.Writer) {})
}

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/rivertype"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/peltonq/pelton/admin/alert"
	"github.com/peltonq/pelton/admin/document"
	"github.com/peltonq/pelton/internal/quantity"
	"github.com/peltonq/pelton/jobs"
)

// alertSettings say what a server watches, and whom it tells.
type alertSettings struct {
	path string
	file *alert.File // nil: what is in force stays
}

// builtInAlerts is what stands for the rules that are built in, where a file could be named.
const builtInAlerts = "built-in"

// alertSlots is how many notices a server sends at once.
const alertSlots = 4

func (s *alertSettings) flags(f *pflag.FlagSet) {
	f.StringVar(&s.path, "alerts", "", "`file` of rules and channels to put in force, see docs/alerts.md; "+builtInAlerts+": the rules that are built in")
}

// check reads the file.
func (s *alertSettings) check() (err error) {
	switch s.path {
	case "":
	case builtInAlerts:
		s.file = alert.BuiltIn()
	default:
		if s.file, err = alert.Load(s.path); err != nil {
			return usagef("--alerts: %w", err)
		}
	}
	return nil
}

// environment is what a file of alerts may refer to.
func (a *app) alertEnvironment() alert.Environment {
	return alert.Environment{Variable: a.env, SMTP: a.env("PELTON_SMTP_URL"), MailFrom: a.env("PELTON_MAIL_FROM")}
}

// work has a client send notices, beside what else it does.
func (s *alertSettings) work(a *app, config *jobs.Config) error {
	if s.file == nil {
		return nil
	}
	worker, err := alert.NewWorker(s.file, a.alertEnvironment())
	if err != nil {
		return usagef("--alerts: %w", err)
	}
	if config.Workers == nil {
		config.Workers = jobs.NewWorkers()
	}
	queues := map[string]jobs.QueueConfig{s.file.Queue: {MaxWorkers: alertSlots}}
	maps.Copy(queues, config.Queues)
	config.Queues = queues
	return jobs.AddWorkerSafely(config.Workers, worker)
}

// hide takes out of an environment the variables that hold secrets of channels: the programs of jobs are other people's.
func (s *alertSettings) hide(environ []string) []string {
	if s.file == nil {
		return environ
	}
	names := s.file.Variables()
	return slices.DeleteFunc(environ, func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(names, name)
	})
}

// newEvaluator makes what evaluates rules, if this process has duties; what does nothing, if not.
func (a *app) newEvaluator(pool *pgxpool.Pool, client *jobs.Client, s serving, e *endpoint) (*alert.Evaluator, error) {
	config := alert.Config{Schema: a.schemaName(), File: s.alerts.file, Logger: a.logger(levelServe)}
	if e.metrics != nil {
		config.Lost = e.metrics.Lost
	}
	return alert.NewEvaluator(pool, client, config)
}

func (a *app) alert() *cobra.Command {
	return parent(&cobra.Command{
		Use: "alert", Short: "See what is bad, mute it, and try who is told", GroupID: groupOperate,
		Long: `See what is bad, mute it, and try who is told.

Rules are evaluated by pelton server and pelton dev. Without a file they are those that are built in, and tell nobody; with --alerts FILE they
tell people by mail, webhooks and chats. docs/alerts.md describes the file.`,
	}, a.alertList(), a.alertRules(), a.alertCheck(), a.alertTest(), a.alertMute(), a.alertUnmute(), a.alertMutes())
}

// withAlerts runs do with a store of alerts.
func (a *app) withAlerts(ctx context.Context, do func(ctx context.Context, db database, store *alert.Store) error) error {
	return a.withClient(ctx, func(ctx context.Context, db database) error {
		store, err := alert.NewStore(db.pool, a.schemaName())
		if err != nil {
			return usage(err)
		}
		err = do(ctx, db, store)
		if _, wrong := errors.AsType[*alert.InputError](err); wrong {
			return usage(err)
		}
		return err
	})
}

// withAlertStatus runs do with what there is to see, and says if nobody looks after it.
func (a *app) withAlertStatus(ctx context.Context, do func(alert.Status) error) error {
	return a.withAlerts(ctx, func(ctx context.Context, _ database, store *alert.Store) error {
		status, err := store.Status(ctx)
		if err != nil {
			return err
		}
		if status.Late {
			last := "never"
			if status.EvaluatedAt != nil {
				last = moment(*status.EvaluatedAt)
			}
			fmt.Fprintf(a.stderr, "pelton: nobody evaluates the rules (last: %s): run pelton server\n", last)
		}
		for _, r := range status.Rules {
			if r.Fault != "" {
				fmt.Fprintf(a.stderr, "pelton: rule %s cannot be read since %s: %s\n", r.Name, optionalMoment(r.FaultAt), r.Fault)
			}
		}
		return do(status)
	})
}

func (a *app) alertList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List what is bad, since when, and who was told", Args: arguments(cobra.NoArgs),
		RunE: brief(func(ctx context.Context, _ []string) error {
			return a.withAlertStatus(ctx, func(status alert.Status) error {
				return list(a, "STATE SEVERITY RULE SUBJECT SINCE NOTICED TOLD MUTED WHAT", status.Alerts, func(w alert.Alert) []any {
					return []any{
						w.State, w.Severity, w.Rule, w.Title, moment(w.Since), optionalMoment(w.NoticedAt), strings.Join(w.Channels, ","),
						optionalMoment(w.MutedUntil), w.Text,
					}
				})
			})
		}),
	}
}

func (a *app) alertRules() *cobra.Command {
	return &cobra.Command{
		Use: "rules", Short: "List the rules in force", Args: arguments(cobra.NoArgs),
		RunE: brief(func(ctx context.Context, _ []string) error {
			return a.withAlertStatus(ctx, func(status alert.Status) error {
				a.note("rules of %s", cmp.Or(status.Source, "no file: those that are built in"))
				return list(a, "RULE TYPE SEVERITY FIRING PENDING NOTICED CHANNELS FAULT", status.Rules, func(r alert.Watch) []any {
					return []any{r.Name, r.Type, r.Severity, r.Firing, r.Pending, optionalMoment(r.NoticedAt), strings.Join(r.Channels, ","), r.Fault}
				})
			})
		}),
	}
}

type alertCheckJSON struct {
	File     string   `json:"file"`
	Rules    int      `json:"rules"`
	Channels int      `json:"channels"`
	Missing  []string `json:"missing"` // variables and files that are not there
}

func (a *app) alertCheck() *cobra.Command {
	secrets := false
	cmd := &cobra.Command{
		Use: "check FILE", Short: "Check a file of rules and channels", Args: arguments(cobra.ExactArgs(1)),
		Long: `Check a file of rules and channels, without a database. Variables and files that its channels refer to may be missing here: that is said,
but is a fault with --secrets only.`,
		RunE: brief(func(_ context.Context, args []string) error {
			f, err := alert.Load(args[0])
			if err != nil {
				return usage(err)
			}
			result := alertCheckJSON{f.Path, len(f.Rules), len(f.Channels), []string{}}
			if err := f.CheckSecrets(a.alertEnvironment()); err != nil {
				if secrets {
					return usage(err)
				}
				result.Missing = strings.Split(err.Error(), "\n")
			}
			return a.document(result, func(w io.Writer) {
				for _, m := range result.Missing {
					fmt.Fprintf(a.stderr, "pelton: missing here: %s\n", m)
				}
				fmt.Fprintf(w, "%s is right: %s, %s\n", f.Path, quantity.Of(len(f.Rules), "rule"), quantity.Of(len(f.Channels), "channel"))
			})
		}),
	}
	cmd.Flags().BoolVar(&secrets, "secrets", false, "variables and files that are missing here are faults")
	return cmd
}

func (a *app) alertTest() *cobra.Command {
	wait := 30 * time.Second
	cmd := &cobra.Command{
		Use: "test CHANNEL", Short: "Send a notice to a channel, the way all notices go", Args: arguments(cobra.ExactArgs(1)),
		RunE: brief(func(ctx context.Context, args []string) error {
			return a.withAlerts(ctx, func(ctx context.Context, db database, store *alert.Store) error {
				id, err := store.Test(ctx, osUser(), db.client, args[0])
				if err != nil {
					return err
				}
				state, err := a.waitNotice(ctx, db.client, id, wait)
				if err != nil {
					return fmt.Errorf("notice to channel %s, job %d: %w", args[0], id, err)
				}
				return a.document(document.AlertTested{JobID: id, Channel: args[0], State: state}, func(w io.Writer) {
					done := "sent"
					if state != string(rivertype.JobStateCompleted) {
						done = "is " + state
					}
					fmt.Fprintf(w, "notice to channel %s, job %d: %s\n", args[0], id, done)
				})
			})
		}),
	}
	cmd.Flags().DurationVar(&wait, "wait", wait, "how long to wait until it is sent; 0: not at all")
	return cmd
}

// waitNotice waits until a notice was sent, or could not be, and returns the job's state.
func (a *app) waitNotice(ctx context.Context, client *jobs.Client, id int64, wait time.Duration) (string, error) {
	end := time.Now().Add(wait)
	for {
		job, err := client.JobGet(ctx, id)
		switch {
		case err != nil:
			return "", err
		case job.State == rivertype.JobStateCompleted:
			return string(job.State), nil
		case len(job.Errors) > 0:
			return "", errors.New(job.Errors[len(job.Errors)-1].Error)
		case time.Now().After(end) && wait > 0:
			return "", refused(fmt.Errorf("nobody has sent it within %v: does a server run with --alerts?", wait))
		case time.Now().After(end):
			return string(job.State), nil
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// muteOf reads RULE [SUBJECT].
func muteOf(args []string) alert.Mute {
	m := alert.Mute{Rule: args[0], Subject: alert.Any}
	if len(args) > 1 {
		m.Subject = args[1]
	}
	return m
}

func (a *app) alertMute() *cobra.Command {
	length, until, reason := "", "", ""
	cmd := &cobra.Command{
		Use: "mute RULE [SUBJECT]", Short: "Send no notices of a rule, or of one subject of it, until a time", Args: arguments(cobra.RangeArgs(1, 2)),
		Example: "  pelton alert mute failure_rate payments --for 2h --reason 'new version'\n  pelton alert mute '*' --until 2026-12-24T18:00:00Z",
		Long: `Send no notices of a rule ('*': any), or of one subject of it (a queue, a schedule, ... as alert list --json calls it), until a time. What is
muted is still seen by alert list. The end of what was told before is told.`,
		RunE: brief(func(ctx context.Context, args []string) (err error) {
			m := muteOf(args)
			m.Reason = reason
			if m.Until, err = parseMute(length, until); err != nil {
				return err
			}
			return a.withAlerts(ctx, func(ctx context.Context, _ database, store *alert.Store) error {
				m, err := store.Mute(ctx, osUser(), m)
				if err != nil {
					return err
				}
				return a.document(m, func(w io.Writer) { fmt.Fprintf(w, "%s is muted until %s\n", muteText(m), moment(m.Until)) })
			})
		}),
	}
	cmd.Flags().StringVar(&length, "for", "", "for how long, as 2h or 7d")
	cmd.Flags().StringVar(&until, "until", "", "until when: RFC 3339")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for others to read")
	return cmd
}

func parseMute(length, until string) (time.Time, error) {
	switch {
	case (length == "") == (until == ""):
		return time.Time{}, usagef("want --for or --until, and not both")
	case until != "":
		t, err := time.Parse(time.RFC3339, until)
		if err != nil {
			return t, usagef("--until %q: want a time as 2026-12-24T18:00:00Z", until)
		}
		return t, nil
	}
	d, err := parseDays(length)
	if err != nil {
		return time.Time{}, usagef("--for: %w", err)
	}
	return time.Now().Add(d), nil
}

func (a *app) alertUnmute() *cobra.Command {
	return &cobra.Command{
		Use: "unmute RULE [SUBJECT]", Short: "End a mute", Args: arguments(cobra.RangeArgs(1, 2)),
		RunE: brief(func(ctx context.Context, args []string) error {
			m := muteOf(args)
			return a.withAlerts(ctx, func(ctx context.Context, _ database, store *alert.Store) error {
				if err := store.Unmute(ctx, osUser(), m.Rule, m.Subject); err != nil {
					return err
				}
				return a.document(document.Unmuted{Rule: m.Rule, Subject: m.Subject}, func(w io.Writer) { fmt.Fprintf(w, "%s is no longer muted\n", muteText(m)) })
			})
		}),
	}
}

func (a *app) alertMutes() *cobra.Command {
	return &cobra.Command{
		Use: "mutes", Short: "List what is muted", Args: arguments(cobra.NoArgs),
		RunE: brief(func(ctx context.Context, _ []string) error {
			return a.withAlertStatus(ctx, func(status alert.Status) error {
				return list(a, "RULE SUBJECT UNTIL BY SINCE REASON", status.Mutes, func(m alert.Mute) []any {
					return []any{m.Rule, m.Subject, moment(m.Until), m.CreatedBy, moment(m.CreatedAt), m.Reason}
				})
			})
		}),
	}
}

func muteText(m alert.Mute) string {
	rule, subject := "rule "+m.Rule, ""
	if m.Rule == alert.Any {
		rule = "every rule"
	}
	if m.Subject != alert.Any {
		subject = ", subject " + m.Subject
	}
	return rule + subject
}

package flow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/jobs/flow/internal/decide"
	"github.com/peltonq/pelton/jobs/flow/internal/draft"
	"github.com/peltonq/pelton/jobs/flow/internal/notice"
	"github.com/peltonq/pelton/jobs/flow/internal/param"
)

// failures names the nodes that failed, the first few.
func (s *step) failures() string {
	var b strings.Builder
	found := 0
	for n := range s.l.machine.Len() {
		if s.l.machine.Node(n).Status != decide.Failed {
			continue
		}
		if found++; found > 20 {
			b.WriteString("and more\n")
			break
		}
		fmt.Fprintf(&b, "%s failed: %s\n", s.l.machine.Path(n), s.l.machine.Node(n).Reason)
	}
	return b.String()
}

func (s *step) failureTargets(ctx context.Context) []string {
	return s.targets(ctx, s.l.options.Notify.Failure, s.l.graph.Opts.FailureEmails, s.l.graph.Opts.NotifyEmails)
}

// targets are those that the run names, and those of the flow's lists. One that cannot be resolved is left as it is: the job that is to tell it fails, and shows it.
func (s *step) targets(ctx context.Context, own []string, lists ...[]string) []string {
	return append(slices.Clone(own), s.l.listed(func(text string, err error) {
		s.e.c.log.WarnContext(ctx, "whom a flow wants told cannot be resolved", "run", s.l.run.ID, "address", text, "error", err)
	}, lists...)...)
}

// listed are the targets of the flow's lists, whose parameters are resolved. Those that cannot be are left as they are, and wrong is told.
func (l *loaded) listed(wrong func(text string, err error), lists ...[]string) (all []string) {
	var scopes param.Scopes
	for _, text := range slices.Concat(lists...) {
		if !strings.Contains(text, "$") {
			all = append(all, text)
			continue
		}
		if scopes == nil {
			scopes = l.scopesOfFlow()
		}
		resolved, err := param.ResolveText(scopes, "list of e-mail addresses", text)
		if err != nil {
			wrong(text, err)
			resolved = text
		}
		all = append(all, draft.SplitList(resolved)...)
	}
	return all
}

func (s *step) notify(event, node, detail string, targets []string) {
	told := map[string]bool{}
	for _, to := range targets {
		if told[to] {
			continue
		}
		told[to] = true
		s.notices = append(s.notices, notice.Args{
			To: to, Event: event, Project: s.l.run.Project, Version: s.l.run.Version, Flow: s.l.run.Flow, Run: s.l.run.ID,
			Status: s.l.machine.Run().Status.String(), Node: node, Detail: detail, At: s.now,
		})
	}
}

func (s *step) sendNotices(ctx context.Context) error {
	if len(s.notices) == 0 {
		return nil
	}
	ctx = s.noticeContext(ctx)
	params := make([]river.InsertManyParams, len(s.notices))
	for i, n := range s.notices {
		params[i] = river.InsertManyParams{Args: n, InsertOpts: &river.InsertOpts{Queue: s.l.options.Queue, MaxAttempts: 10}}
	}
	for len(params) > 0 {
		_, err := s.e.c.jobs.InsertManyTx(ctx, s.tx, params)
		invalid, is := errors.AsType[*jobs.InvalidJobError](err)
		switch {
		case err == nil:
			return nil
		case !is || invalid.Index >= len(params):
			return fmt.Errorf("insert notices: %w", err)
		}
		s.e.c.log.ErrorContext(ctx, "a notice cannot be sent", "run", s.l.run.ID, "error", invalid.Err)
		params = slices.Delete(params, invalid.Index, invalid.Index+1)
	}
	return nil
}

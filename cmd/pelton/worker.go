package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/peltonq/pelton/admin"
)

func (a *app) worker() *cobra.Command {
	var s serving
	cmd := &cobra.Command{
		Use:     "worker",
		Short:   "Work jobs of the built-in kinds",
		GroupID: groupRun,
		Long: `Work jobs of the built-in kinds (commands, nodes of flows, notices, noop) from the queues given, so many at once as the numbers say.

Jobs of other kinds are left to the programs that know them. The scheduler's duties (due jobs, retries, dead processes,
partitions) are those of pelton server; run at least one. A worker warns if for some minutes nobody has done them.`,
		Example: "  pelton worker --queues default:100,etl:10",
		Args:    arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.check(); err != nil {
				return err
			}
			stop := listenForStops(cmd.Context())
			defer stop.release()
			address, err := a.address()
			if err != nil {
				return err
			}
			return a.serve(stop, address, s, nil, a.printStarted("worker"))
		},
	}
	cmd.Flags().StringVar(&s.queues, "queues", fmt.Sprintf("default:%d", defaultSlots), "queues and how many of their jobs to run at once")
	cmd.Flags().StringVar(&s.listen, "listen", "", "`address` of a health and metrics endpoint (default: none)")
	s.flags(cmd.Flags())
	a.secretKeyFlag(cmd.Flags())
	return cmd
}

func (a *app) server() *cobra.Command {
	s := serving{duties: true}
	work := false
	cmd := &cobra.Command{
		Use:     "server",
		Short:   "Run the scheduler, the page and the API, with --worker an executor too",
		GroupID: groupRun,
		Long: `Run the scheduler's duties (due jobs, retries, dead processes, partitions and retention), and serve the page, the API and
metrics. Any number of servers may run at once. With --worker this process also works jobs, as pelton worker does.`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("queues") && !work {
				return usagef("--queues without --worker: a server works no jobs unless asked to")
			}
			if !work {
				s.queues = ""
			}
			if err := s.check(); err != nil {
				return err
			}
			stop := listenForStops(cmd.Context())
			defer stop.release()
			address, err := a.address()
			if err != nil {
				return err
			}
			return a.serve(stop, address, s, nil, a.printStarted("server"))
		},
	}
	retentionFlags(cmd.Flags(), &s.retention)
	cmd.Flags().BoolVar(&work, "worker", false, "also work jobs")
	cmd.Flags().StringVar(&s.queues, "queues", fmt.Sprintf("default:%d", defaultSlots), "with --worker: queues and how many of their jobs to run at once")
	cmd.Flags().StringVar(&s.listen, "listen", admin.DefaultListen, "`address` of the page, the API, health and metrics; empty: none")
	s.access.flags(cmd.Flags())
	s.alerts.flags(cmd.Flags())
	s.flags(cmd.Flags())
	a.secretKeyFlag(cmd.Flags())
	return cmd
}

func queueText(queues map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(queues)) {
		parts = append(parts, fmt.Sprintf("%s:%d", name, queues[name]))
	}
	return strings.Join(parts, ",")
}

package page

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/internal/sqlfile"
	"github.com/peltonq/pelton/jobs"
)

var queuesRoom = room{Name: "Queues", Path: "/queues", Mount: func(p *Page) {
	p.get("/queues", viewer, p.showQueues)
	p.post("/queues/pause", operator, p.pauseQueue)
	p.post("/queues/resume", operator, p.resumeQueue)
}}

// queuesShown bounds the list.
const queuesShown = 1000

// queueLine is a queue as the list shows it.
type queueLine struct {
	Name     string
	Gauges   QueueGauges
	PausedAt *time.Time
	Change   *change // the pause or resume that was last
	Own      bool    // paused by itself, not with all
	Unworked bool    // jobs are ready, and no executor takes them
}

// change says who did something last.
type change struct {
	Target      string
	At          time.Time
	Actor, Role string
	Action      string
}

// Who is the actor, or the database's role where nobody said.
func (c change) Who() string {
	if c.Actor != "" {
		return c.Actor
	}
	return "role " + c.Role
}

// lastChanges reads who did one of these actions last, by target.
func (p *Page) lastChanges(ctx context.Context, tx pgx.Tx, targets []string, actions ...string) (map[string]change, error) {
	list, err := sqlfile.Rows(ctx, p.sql, tx, pgx.RowToStructByPos[change], "last_changes", targets, actions)
	if err != nil {
		return nil, err
	}
	found := map[string]change{}
	for _, c := range list {
		found[c.Target] = c
	}
	return found, nil
}

type queuesPage struct {
	All    *queueLine // paused as a whole; nil: not
	Queues []queueLine
	More   bool

	Reading bool // what waits and runs is not known yet
}

func (p *Page) showQueues(w http.ResponseWriter, r *http.Request) error {
	gauges, err := p.config.Gauges()
	if err != nil {
		return err
	}
	shown := queuesPage{Reading: gauges.Reading}
	err = p.read(r.Context(), func(ctx context.Context, tx pgx.Tx) error {
		list, err := p.config.Jobs.QueueListTx(ctx, tx, jobs.NewQueueListParams().First(queuesShown))
		if err != nil {
			return err
		}
		shown.More = len(list.Queues) == queuesShown
		names := []string{jobs.AllQueues}
		for _, q := range list.Queues {
			names = append(names, q.Name)
		}
		changes, err := p.lastChanges(ctx, tx, names, "queue.pause", "queue.resume")
		if err != nil {
			return err
		}
		shown.fill(list.Queues, gauges, changes)
		worked, err := sqlfile.Rows(ctx, p.sql, tx, pgx.RowTo[string], "worked_queues")
		for i, q := range shown.Queues {
			shown.Queues[i].Unworked = q.Gauges.Ready > 0 && !slices.Contains(worked, q.Name)
		}
		return err
	})
	if err != nil {
		return err
	}
	return p.render(w, r, "queues", "Queues", shown)
}

func (s *queuesPage) fill(queues []*rivertype.Queue, gauges Gauges, changes map[string]change) {
	known := map[string]bool{}
	for _, q := range queues {
		known[q.Name] = true
		line := queueLine{Name: q.Name, Gauges: gauges.Queues[q.Name], PausedAt: q.PausedAt}
		if c, ok := changes[q.Name]; ok {
			if all := changes[jobs.AllQueues]; all.Action == "queue.resume" && all.At.After(c.At) {
				c = all
			}
			line.Change = &c
			line.Own = c.Action == "queue.pause"
		}
		if q.Name == jobs.AllQueues {
			s.All = &line
			continue
		}
		s.Queues = append(s.Queues, line)
	}
	for _, name := range slices.Sorted(maps.Keys(gauges.Queues)) { // lines that nobody works
		if known[name] || name == "" {
			continue
		}
		if s.More = s.More || len(s.Queues) >= queuesShown; s.More {
			return
		}
		s.Queues = append(s.Queues, queueLine{Name: name, Gauges: gauges.Queues[name]})
	}
}

func (p *Page) pauseQueue(w http.ResponseWriter, r *http.Request) error {
	name := r.PostFormValue("queue")
	if err := p.config.Jobs.QueuePause(r.Context(), name, nil); err != nil {
		return queueFault(err)
	}
	return p.done(w, r, back(r, "/queues"), "Paused %s. What runs goes on.", queueName(name))
}

func (p *Page) resumeQueue(w http.ResponseWriter, r *http.Request) error {
	name := r.PostFormValue("queue")
	if err := p.config.Jobs.QueueResume(r.Context(), name, nil); err != nil {
		return queueFault(err)
	}
	return p.done(w, r, back(r, "/queues"), "Resumed %s.", queueName(name))
}

func queueFault(err error) error {
	if bad, ok := errors.AsType[*jobs.QueueNameError](err); ok {
		return badInput("%v", bad)
	}
	return err
}

func queueName(name string) string {
	if name == jobs.AllQueues {
		return "all queues"
	}
	return "queue " + name
}

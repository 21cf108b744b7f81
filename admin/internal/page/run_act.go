package page

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/internal/sqlfile"
)

// mostChosen bounds the nodes that one form acts on.
const mostChosen = 1000

// runAction is something that is done to a run.
type runAction struct {
	said   string // when it was asked for
	nodes  bool   // it is for chosen nodes
	text   string // what a confirmation says; empty: none is asked for
	button string // of a confirmation
}

var runActions = map[string]runAction{
	"pause":  {said: "Paused the run: no more nodes start, what has started goes on."},
	"resume": {said: "Resumed the run."},
	"kill": {
		said: "The run is being killed.", button: "Kill it",
		text: "What runs is ended, and nothing starts any more. Processes get a signal and then have a few seconds to end by themselves.",
	},
	"retry": {said: "The run goes on with what had failed."},
	"rerun": {
		said: "The run goes on.", button: "Run them once more", nodes: true,
		text: "These nodes and all that depends on them run once more, also what had succeeded. Their outputs are replaced:",
	},
	"again": {
		said: "The run goes on.", button: "Run all of it once more", nodes: true,
		text: "All that is in these runs once more, also what had succeeded. Their outputs are replaced:",
	},
	"succeed": {
		said: "Marked as succeeded.", button: "Mark as succeeded", nodes: true,
		text: "What waits for these nodes goes on as if they had done their work. It is written down who said so:",
	},
}

// chosen reads what a form asks for: the action, and the paths of the nodes it names by their numbers.
func (p *Page) chosen(r *http.Request, run runRow) (action runAction, paths []string, err error) {
	action, ok := runActions[r.PathValue("action")]
	if !ok {
		return action, nil, errNoPage
	}
	if err := r.ParseForm(); err != nil { // of an address
		return action, nil, badInput("the address cannot be read: %v", err)
	}
	if !action.nodes {
		return action, nil, nil
	}
	var numbers []int
	for _, field := range r.Form["node"] {
		for text := range strings.SplitSeq(field, ",") {
			n, err := small(text)
			if err != nil || n < 0 || n > math.MaxInt32 {
				return action, nil, badInput("%q is no number of a node", text)
			}
			numbers = append(numbers, n)
		}
	}
	if len(numbers) == 0 {
		return action, nil, badInput("no node was chosen")
	}
	if len(numbers) > mostChosen {
		return action, nil, badInput("%d nodes are too many at once, want at most %d", len(numbers), mostChosen)
	}
	err = p.read(r.Context(), func(ctx context.Context, tx pgx.Tx) error {
		list, err := sqlfile.Rows(ctx, p.sql, tx, pgx.RowToStructByPos[nodeRef], "flow_node_paths", run.ID, numbers)
		for _, n := range list {
			paths = append(paths, n.Path)
		}
		return err
	})
	if err == nil && len(paths) == 0 {
		err = badInput("run %d has no such nodes", run.ID)
	}
	return action, paths, err
}

// confirmRun asks once more before something is done that cannot be undone.
func (p *Page) confirmRun(w http.ResponseWriter, r *http.Request) error {
	run, err := p.mayRun(r)
	if err != nil {
		return err
	}
	action, paths, err := p.chosen(r, run)
	if err != nil {
		return err
	}
	if action.text == "" {
		return errNoPage
	}
	text, fields := action.text, map[string]string{}
	if action.nodes {
		text += " " + strings.Join(paths, ", ")
		fields["node"] = strings.Join(r.Form["node"], ",")
	}
	return p.confirm(w, r, fmt.Sprintf("Run %d of %s/%s", run.ID, run.Project, run.Flow), confirmation{
		Text: text, Action: run.Where() + "/" + r.PathValue("action"), Button: action.button, Back: run.Where(), Fields: fields,
	})
}

func (p *Page) changeRun(w http.ResponseWriter, r *http.Request) error {
	run, err := p.mayRun(r)
	if err != nil {
		return err
	}
	action, paths, err := p.chosen(r, run)
	if err != nil {
		return err
	}
	ctx, cancel := p.limit(r.Context())
	defer cancel()
	switch flows := p.config.Flows; r.PathValue("action") {
	case "pause":
		err = flows.Pause(ctx, run.ID)
	case "resume":
		err = flows.Resume(ctx, run.ID)
	case "kill":
		err = flows.Kill(ctx, run.ID)
	case "retry":
		err = flows.Retry(ctx, run.ID)
	case "again":
		err = flows.Retry(ctx, run.ID, paths...)
	case "rerun":
		err = flows.Rerun(ctx, run.ID, paths...)
	case "succeed":
		for i, path := range paths {
			if err = flows.MarkSucceeded(ctx, run.ID, path); err != nil {
				if i > 0 {
					err = fmt.Errorf("%s marked; then: %w", plural(i, "1 node was", "%d nodes were"), err)
				}
				break
			}
		}
	}
	if err != nil {
		return flowFault(err)
	}
	return p.done(w, r, back(r, run.Where()), "%s", action.said)
}

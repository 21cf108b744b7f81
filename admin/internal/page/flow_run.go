package page

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/internal/once"
	"github.com/peltonq/pelton/jobs/flow"
)

// runFlow starts a run, or only checks the form. With a fault nothing is stored, and the form is shown again as it was, the faults beside its fields.
func (p *Page) runFlow(w http.ResponseWriter, r *http.Request) error {
	ctx, project := r.Context(), r.PathValue("project")
	if err := inProject(ctx, access.Operator, project); err != nil {
		return err
	}
	data, err := p.flowPage(r)
	if err != nil {
		return err
	}
	f := &data.Form
	f.Open = true
	options := f.parse(r)
	wanted := flow.RunParams{Project: project, Flow: data.Flow, Options: options}
	if r.PostFormValue("version") != "" {
		wanted.Version = data.Version.No
	}
	if len(f.Faults) == 0 {
		err := p.read(ctx, func(ctx context.Context, tx pgx.Tx) error {
			_, err := p.config.Flows.CheckRunTx(ctx, tx, wanted)
			return err
		})
		if err := f.take(err); err != nil {
			return flowFault(err)
		}
	}
	if len(f.Faults) > 0 {
		return p.renderStatus(w, r, http.StatusUnprocessableEntity, "flow", data.Flow, data)
	}
	if err := p.checkBeyond(ctx, wanted); errors.Is(err, access.ErrForbidden) {
		f.fault("", "%v", err)
		return p.renderStatus(w, r, http.StatusForbidden, "flow", data.Flow, data)
	} else if err != nil {
		return err
	}
	if r.PostFormValue("check") != "" {
		f.Said = "Nothing is wrong with it. Nothing was started."
		return p.render(w, r, "flow", data.Flow, data)
	}
	ctx, cancel := p.limit(ctx)
	defer cancel()
	key, err := keyOf(r, f.Key)
	if err != nil {
		return err
	}
	run, replayed, err := p.startRun(ctx, key, wanted)
	switch {
	case errors.Is(err, flow.ErrRunning):
		f.fault("concurrent", "%v", err)
		return p.renderStatus(w, r, http.StatusConflict, "flow", data.Flow, data)
	case errors.Is(err, once.ErrReused):
		f.fault("", "This form has started a run already, with other values. If you want this one too, press the button once more.")
		return p.renderStatus(w, r, http.StatusConflict, "flow", data.Flow, data)
	case errors.Is(err, once.ErrInUse):
		return refused(err)
	}
	if err := f.take(err); err != nil {
		return flowFault(err)
	}
	if len(f.Faults) > 0 {
		return p.renderStatus(w, r, http.StatusUnprocessableEntity, "flow", data.Flow, data)
	}
	if replayed {
		return p.done(w, r, runPath(run), "Run %d was started by the first press of the button; the second one started nothing.", run)
	}
	return p.done(w, r, runPath(run), "Started run %d.", run)
}

// checkBeyond refuses a run to those who may start it but not push its project, and ask for more than was pushed.
func (p *Page) checkBeyond(ctx context.Context, wanted flow.RunParams) error {
	beyond, err := p.config.Flows.Beyond(ctx, wanted)
	if err != nil {
		return flowFault(err)
	}
	if beyond == "" {
		return nil
	}
	if err := access.Check(ctx, access.Admin, wanted.Project); err != nil {
		return fmt.Errorf("%s, which is for who may push the project: %w", beyond, err)
	}
	return nil
}

// startRun starts a run, once under a key.
func (p *Page) startRun(ctx context.Context, key string, wanted flow.RunParams) (run int64, replayed bool, err error) {
	run, replayed, err = once.Do(ctx, p.once, actor(ctx).Name, key, []any{"page: run", wanted.Project, wanted.Flow, wanted.Version, wanted.Options},
		func(ctx context.Context, tx pgx.Tx) (int64, error) { return p.config.Flows.RunTx(ctx, tx, wanted) })
	if err == nil && !replayed {
		p.config.Flows.Hint(ctx)
	}
	return run, replayed, err
}

func runPath(id int64) string { return "/runs/" + strconv.FormatInt(id, 10) }

func (f *runForm) fault(field, format string, args ...any) {
	f.Faults[field] = append(f.Faults[field], fmt.Sprintf(format, args...))
}

// take puts the faults of options beside their fields; other errors it returns.
func (f *runForm) take(err error) error {
	invalid, ok := errors.AsType[*flow.InvalidOptionsError](err)
	if !ok {
		return err
	}
	for _, fault := range invalid.Faults() {
		f.fault(fault.Field, "%s", fault.Reason)
	}
	return nil
}

// parse reads the form that was sent into f, and what it means; faults are noted.
func (f *runForm) parse(r *http.Request) flow.Options {
	o := flow.Options{Params: map[string]string{}, NodeParams: map[string]map[string]string{}}
	for i := range f.Params {
		param := &f.Params[i]
		sent, ok := r.PostForm["p:"+param.Name]
		if !ok {
			continue
		}
		if param.sent(sent[0]) {
			o.Params[param.Name] = param.Value
		}
	}
	text := func(name string) string { return strings.TrimSpace(oneEnd.Replace(r.PostFormValue(name))) }
	ofNode := func(left, value string) bool {
		// A node's path may hold colons, a parameter's name hardly does.
		colon := strings.LastIndexByte(left, ':')
		if colon < 0 {
			return false
		}
		path := strings.TrimSpace(left[:colon])
		if o.NodeParams[path] == nil {
			o.NodeParams[path] = map[string]string{}
		}
		o.NodeParams[path][strings.TrimSpace(left[colon+1:])] = value
		return true
	}
	for _, field := range slices.Sorted(maps.Keys(r.PostForm)) {
		name, ok := strings.CutPrefix(field, "long:")
		if !ok {
			continue
		}
		one := formParam{Name: name}
		one.sent(r.PostFormValue(field))
		f.Long = append(f.Long, one)
		if !ofNode(name, one.Value) {
			o.Params[name] = one.Value
		}
	}
	f.More, f.NodeParams = oneEnd.Replace(r.PostFormValue("params")), oneEnd.Replace(r.PostFormValue("node_params"))
	for _, line := range linesOf(f.More) {
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			f.fault("params", "%q: want NAME=VALUE", line)
		}
		o.Params[strings.TrimSpace(name)] = value
	}
	for _, line := range linesOf(f.NodeParams) {
		left, value, ok := strings.Cut(line, "=")
		if !ok || !ofNode(left, value) {
			f.fault("node_params", "%q: want NODE:NAME=VALUE", line)
		}
	}
	o.Disabled = append(o.Disabled, r.PostForm["off"]...)
	for _, path := range linesOf(text("disabled")) {
		if !slices.Contains(o.Disabled, path) {
			o.Disabled = append(o.Disabled, path)
		}
	}
	f.disable(o.Disabled)
	number := func(field string) (string, int) {
		written := text(field)
		n, err := small(written)
		if written != "" && err != nil {
			f.fault(field, "%q is no whole number", written)
		}
		return written, n
	}
	f.OnFailure, f.Cancelled, f.Concurrent, f.Queue = text("on_failure"), text("on_cancelled_end"), text("concurrent"), text("queue")
	o.OnFailure, o.OnCancelledEnd, o.Concurrent, o.Queue = flow.OnFailure(f.OnFailure), flow.OnCancelledEnd(f.Cancelled), flow.Concurrent(f.Concurrent), f.Queue
	f.Priority, o.Priority = number("priority")
	f.MaxParallel, o.MaxParallel = number("max_parallel")
	f.JobPriority, o.JobPriority = number("job_priority")
	o.SLAs = f.parseSLAs(r)
	f.Success, f.Failure, f.First = text("success"), text("failure"), text("first_failure")
	o.Notify = flow.Notify{Success: targetsOf(f.Success), Failure: targetsOf(f.Failure), FirstFailure: targetsOf(f.First)}
	return o
}

func (f *runForm) parseSLAs(r *http.Request) (list []flow.SLA) {
	f.SLAs = nil
	for i := 0; i < slaRows || r.PostForm["sla_within"+strconv.Itoa(i)] != nil; i++ {
		no := strconv.Itoa(i)
		s := formSLA{
			Node: strings.TrimSpace(r.PostFormValue("sla_node" + no)), Within: strings.TrimSpace(r.PostFormValue("sla_within" + no)), Do: r.PostFormValue("sla_do" + no),
			Succeed: r.PostFormValue("sla_succeed"+no) != "",
		}
		f.SLAs = append(f.SLAs, s)
		if s.Within == "" {
			if s.Node != "" {
				f.fault("slas", "SLA of %s: want a time", s.Node)
			}
			continue
		}
		within, err := time.ParseDuration(strings.ReplaceAll(s.Within, " ", ""))
		if err != nil {
			f.fault("slas", "%q is no time: want one as 90m or 2h30m", s.Within)
			continue
		}
		list = append(list, flow.SLA{
			Node: s.Node, Within: flow.Duration(within), Succeed: s.Succeed, Alert: s.Do == "alert" || s.Do == "both", Kill: s.Do == "kill" || s.Do == "both",
		})
	}
	return list
}

// linesOf are the lines of a text that are not empty.
func linesOf(text string) (list []string) {
	for line := range strings.SplitSeq(text, "\n") {
		if strings.TrimSpace(line) != "" {
			list = append(list, line)
		}
	}
	return list
}

// targetsOf are addresses, one a line or apart by commas.
func targetsOf(text string) (list []string) {
	for one := range strings.FieldsFuncSeq(text, func(c rune) bool { return c == ',' || c == '\n' }) {
		if one = strings.TrimSpace(one); one != "" {
			list = append(list, one)
		}
	}
	return list
}

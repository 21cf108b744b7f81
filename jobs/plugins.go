package jobs

import (
	"context"
	"fmt"
	"slices"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// plugins are a client's hooks and middleware, sorted by what they do.
type plugins struct {
	insertBegins []rivertype.HookInsertBegin
	workBegins   []rivertype.HookWorkBegin
	workEnds     []rivertype.HookWorkEnd
	inserts      []rivertype.JobInsertMiddleware
	works        []rivertype.WorkerMiddleware
}

// newPlugins sorts what a client was given, in River's order: what is in Plugins comes first.
func newPlugins(config *Config) (*plugins, error) {
	p := &plugins{}
	for _, both := range config.Plugins {
		isHook, isMiddleware := p.addHook(both), p.addMiddleware(both)
		if !isHook && !isMiddleware {
			return nil, fmt.Errorf("plugin %T has none of the methods InsertBegin, WorkBegin, WorkEnd, InsertMany, Work", both)
		}
	}
	for _, h := range config.Hooks {
		if !p.addHook(h) {
			return nil, fmt.Errorf("hook %T has none of the methods InsertBegin, WorkBegin, WorkEnd", h)
		}
	}
	for _, m := range config.Middleware {
		if !p.addMiddleware(m) {
			return nil, fmt.Errorf("middleware %T has neither InsertMany nor Work", m)
		}
	}
	return p, nil
}

func (p *plugins) addHook(h any) bool {
	begin, isBegin := h.(rivertype.HookInsertBegin)
	work, isWork := h.(rivertype.HookWorkBegin)
	end, isEnd := h.(rivertype.HookWorkEnd)
	if isBegin {
		p.insertBegins = append(p.insertBegins, begin)
	}
	if isWork {
		p.workBegins = append(p.workBegins, work)
	}
	if isEnd {
		p.workEnds = append(p.workEnds, end)
	}
	return isBegin || isWork || isEnd
}

func (p *plugins) addMiddleware(m any) bool {
	insert, isInsert := m.(rivertype.JobInsertMiddleware)
	work, isWork := m.(rivertype.WorkerMiddleware)
	if isInsert {
		p.inserts = append(p.inserts, insert)
	}
	if isWork {
		p.works = append(p.works, work)
	}
	return isInsert || isWork
}

// argsPlugins are the hooks and middleware of an args type. What they cannot do here is passed over, as it is for River.
func argsPlugins(args rivertype.JobArgs) (p plugins) {
	if a, ok := args.(river.JobArgsWithPlugins); ok {
		for _, both := range a.Plugins() {
			p.addHook(both)
			p.addMiddleware(both)
		}
	}
	if a, ok := args.(river.JobArgsWithHooks); ok {
		for _, h := range a.Hooks() {
			p.addHook(h)
		}
	}
	return p
}

// insertBegin runs the insert hooks: the client's, then the args type's. An error is an *InvalidJobError.
func (p *plugins) insertBegin(ctx context.Context, many []*rivertype.JobInsertParams) error {
	for i, params := range many {
		own := argsPlugins(params.Args)
		for _, hooks := range [][]rivertype.HookInsertBegin{p.insertBegins, own.insertBegins} {
			for _, h := range hooks {
				if err := h.InsertBegin(ctx, params); err != nil {
					return &InvalidJobError{Index: i, Kind: params.Kind, Err: err}
				}
			}
		}
	}
	return nil
}

// insertMiddleware is what stands around an insert: the client's, then that of the args types, once for each kind.
func (p *plugins) insertMiddleware(many []*rivertype.JobInsertParams) []rivertype.JobInsertMiddleware {
	all := slices.Clip(p.inserts)
	var seen map[string]bool
	for _, params := range many {
		if _, ok := params.Args.(river.JobArgsWithPlugins); !ok || seen[params.Kind] {
			continue
		}
		if seen == nil {
			seen = map[string]bool{}
		}
		seen[params.Kind] = true
		all = append(all, argsPlugins(params.Args).inserts...)
	}
	return all
}

// insert runs the insert hooks and put inside the insert middleware, the first one outermost.
func (p *plugins) insert(
	ctx context.Context, many []*rivertype.JobInsertParams,
	put func(context.Context) ([]*rivertype.JobInsertResult, error),
) ([]*rivertype.JobInsertResult, error) {
	inner := func(ctx context.Context) ([]*rivertype.JobInsertResult, error) {
		if err := p.insertBegin(ctx, many); err != nil {
			return nil, err
		}
		return put(ctx)
	}
	for _, m := range slices.Backward(p.insertMiddleware(many)) {
		next := inner
		inner = func(ctx context.Context) ([]*rivertype.JobInsertResult, error) {
			return m.InsertMany(ctx, many, next)
		}
	}
	return inner(ctx)
}

// jobPlugins are the hooks and middleware around one kind's work.
type jobPlugins struct {
	begins []rivertype.HookWorkBegin
	ends   []rivertype.HookWorkEnd
	works  []rivertype.WorkerMiddleware
}

func (p *plugins) forArgs(args river.JobArgs) *jobPlugins {
	own := argsPlugins(args)
	return &jobPlugins{
		begins: slices.Concat(p.workBegins, own.workBegins),
		ends:   slices.Concat(p.workEnds, own.workEnds),
		works:  slices.Concat(p.works, own.works),
	}
}

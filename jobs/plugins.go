package jobs

import (
	"context"
	"fmt"

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

func newPlugins(config *Config) (*plugins, error) {
	p := &plugins{}
	for _, h := range config.Hooks {
		if !p.addHook(h) {
			return nil, fmt.Errorf("hook %T has none of the methods InsertBegin, WorkBegin, WorkEnd", h)
		}
	}
	for _, m := range config.Middleware {
		insert, isInsert := m.(rivertype.JobInsertMiddleware)
		work, isWork := m.(rivertype.WorkerMiddleware)
		if isInsert {
			p.inserts = append(p.inserts, insert)
		}
		if isWork {
			p.works = append(p.works, work)
		}
		if !isInsert && !isWork {
			return nil, fmt.Errorf("middleware %T has neither InsertMany nor Work", m)
		}
	}
	return p, nil
}

func (p *plugins) addHook(h rivertype.Hook) bool {
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

// insertBegin runs the insert hooks: the client's, then the args type's.
func (p *plugins) insertBegin(ctx context.Context, params *rivertype.JobInsertParams) error {
	for _, h := range p.insertBegins {
		if err := h.InsertBegin(ctx, params); err != nil {
			return err
		}
	}
	for _, h := range argsHooks(params.Args) {
		if begin, ok := h.(rivertype.HookInsertBegin); ok {
			if err := begin.InsertBegin(ctx, params); err != nil {
				return err
			}
		}
	}
	return nil
}

func argsHooks(args rivertype.JobArgs) []rivertype.Hook {
	if a, ok := args.(river.JobArgsWithHooks); ok {
		return a.Hooks()
	}
	return nil
}

// wrapInsert tells whether any middleware stands around inserts.
func (p *plugins) wrapInsert() bool { return len(p.inserts) > 0 }

// insert runs put inside the insert middleware, the first one outermost.
func (p *plugins) insert(
	ctx context.Context, params []*rivertype.JobInsertParams,
	put func(context.Context) ([]*rivertype.JobInsertResult, error),
) ([]*rivertype.JobInsertResult, error) {
	for i := len(p.inserts) - 1; i >= 0; i-- {
		m, inner := p.inserts[i], put
		put = func(ctx context.Context) ([]*rivertype.JobInsertResult, error) {
			return m.InsertMany(ctx, params, inner)
		}
	}
	return put(ctx)
}

// jobPlugins are the hooks and middleware around one kind's work.
type jobPlugins struct {
	begins []rivertype.HookWorkBegin
	ends   []rivertype.HookWorkEnd
	works  []rivertype.WorkerMiddleware
}

func (p *plugins) forArgs(args river.JobArgs) *jobPlugins {
	j := &jobPlugins{begins: p.workBegins, ends: p.workEnds, works: p.works}
	for _, h := range argsHooks(args) {
		if begin, ok := h.(rivertype.HookWorkBegin); ok {
			j.begins = append(j.begins[:len(j.begins):len(j.begins)], begin)
		}
		if end, ok := h.(rivertype.HookWorkEnd); ok {
			j.ends = append(j.ends[:len(j.ends):len(j.ends)], end)
		}
	}
	return j
}

package executor

import (
	"sync"

	"github.com/peltonq/pelton/jobs/internal/store"
)

// tasks are those claimed and not yet done, by job. A job can be here twice when its run was taken away and came back: the
// newer one counts.
type tasks struct {
	mu   sync.Mutex
	byID map[int64]*Task
}

func newTasks() *tasks { return &tasks{byID: map[int64]*Task{}} }

func (s *tasks) add(list []*Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range list {
		s.byID[t.ID] = t
	}
}

func (s *tasks) remove(list []*Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range list {
		if s.byID[t.ID] == t {
			delete(s.byID, t.ID)
		}
	}
}

func (s *tasks) get(id int64) *Task {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byID[id]
}

// keys lists the runs.
func (s *tasks) keys() []store.RunKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := make([]store.RunKey, 0, len(s.byID))
	for id, t := range s.byID {
		keys = append(keys, store.RunKey{JobID: id, Run: t.Run})
	}
	return keys
}

// clear forgets what was given up when the executor stopped.
func (s *tasks) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.byID)
}

func (s *tasks) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byID)
}

// endBefore ends the contexts of all tasks claimed by earlier incarnations.
func (s *tasks) endBefore(executor int64, cause error) {
	s.mu.Lock()
	var old []*Task
	for _, t := range s.byID {
		if t.Executor < executor {
			old = append(old, t)
		}
	}
	s.mu.Unlock()
	for _, t := range old {
		t.end(cause)
	}
}

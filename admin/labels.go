package admin

import (
	"strings"
	"sync"
)

// other is the label of what does not fit any more.
const other = "other"

// Bounds of labels, so that nobody's mistake floods the metrics.
const (
	maxQueues = 200
	maxKinds  = 200
	maxPairs  = 2000 // of a queue and a kind

	maxProjects = 100
	maxOwners   = 50
	maxStatuses = 50
	maxReasons  = 50
)

// names are the first few values of a label that came by. Beyond the limit all further ones are "other".
type names struct {
	limit int

	mu    sync.RWMutex
	known map[string]string
}

func newNames(limit int) *names { return &names{limit: limit, known: map[string]string{}} }

// fold returns the label for a value.
func (n *names) fold(value string) string {
	n.mu.RLock()
	label, ok := n.known[value]
	full := len(n.known) >= n.limit
	n.mu.RUnlock()
	switch {
	case ok:
		return label
	case full:
		return other
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.known) >= n.limit {
		return other
	}
	label = strings.ToValidUTF8(value, "\uFFFD")
	n.known[strings.Clone(value)] = label
	return label
}

// pair is a queue and a kind, as labels.
type pair struct{ queue, kind string }

// pairs bounds queues, kinds, and how many of their combinations there are.
type pairs struct {
	queues, kinds *names

	mu    sync.Mutex
	known map[pair]bool
}

func newPairs() *pairs {
	return &pairs{queues: newNames(maxQueues), kinds: newNames(maxKinds), known: map[pair]bool{}}
}

// fold returns the labels for a queue and a kind.
func (p *pairs) fold(queue, kind string) pair {
	labels := pair{p.queues.fold(queue), p.kinds.fold(kind)}
	if labels.kind == other {
		return labels
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.known[labels] {
		if len(p.known) >= maxPairs {
			return pair{labels.queue, other}
		}
		p.known[labels] = true
	}
	return labels
}

// Package mark is how a job says that it is a node of a flow's run: a key of its metadata, which the flow engine writes and the
// queue reads. The queue reports the end of a marked job in the transaction that records it.
package mark

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"
)

// Key is the mark's key in a job's metadata. Keys with this prefix are Pelton's own.
const Key = "pelton:flow"

var quoted = []byte(`"` + Key + `"`)

// Mark says which node a job works for, and what that node wants otherwise than its kind's worker.
type Mark struct {
	Run     int64   `json:"run"`
	Node    int32   `json:"node"`
	Path    string  `json:"path,omitempty"`    // of the node
	Try     int     `json:"try,omitempty"`     // of the node: whole retries of it
	Timeout float64 `json:"timeout,omitempty"` // seconds; 0: the worker's
	Retry   *Retry  `json:"retry,omitempty"`   // nil: the worker's policy
}

// Retry is when a failed node is tried again.
type Retry struct {
	Backoff    float64 `json:"backoff,omitempty"`     // seconds before the first retry
	MaxBackoff float64 `json:"max_backoff,omitempty"` // above Backoff: doubled each time, up to this
	Jitter     float64 `json:"jitter,omitempty"`      // each wait is shortened at random by up to this part
}

// Wait is how long to wait after the attempt with this number, from 1.
func (r *Retry) Wait(attempt int) time.Duration {
	wait := r.Backoff
	for range attempt - 1 {
		if wait *= 2; wait >= r.MaxBackoff {
			wait = max(r.Backoff, r.MaxBackoff)
			break
		}
	}
	wait *= 1 - r.Jitter*rand.Float64() //nolint:gosec // no secret
	return time.Duration(min(wait, maxWait) * float64(time.Second))
}

const maxWait = 365 * 24 * 3600

// Of reads the mark of a job's metadata; nil: none, or one that no engine has made.
func Of(metadata []byte) *Mark {
	if !bytes.Contains(metadata, quoted) {
		return nil
	}
	var m struct {
		Mark *Mark `json:"pelton:flow"`
	}
	if json.Unmarshal(metadata, &m) != nil || m.Mark == nil || m.Mark.Run <= 0 || m.Mark.Node < 0 {
		return nil
	}
	return m.Mark
}

// Metadata is a job's metadata that holds the mark, and other keys.
func (m Mark) Metadata(others map[string]string) ([]byte, error) {
	keys := map[string]any{Key: m}
	for key, value := range others {
		keys[key] = value
	}
	b, err := json.Marshal(keys)
	if err != nil {
		return nil, fmt.Errorf("encode the mark of node %d of run %d: %w", m.Node, m.Run, err)
	}
	return b, nil
}

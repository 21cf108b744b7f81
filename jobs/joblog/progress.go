package joblog

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// Progress is how far a run has come, as it stands in the stream of reports, one JSON object a line.
type Progress struct {
	At      time.Time `json:"at"`
	Percent float64   `json:"percent"`
	Message string    `json:"message,omitempty"`
}

// Progress reports how far the run has come, 0 to 100 percent. Of reports in quick succession the newest wins: about one a
// second is stored, and the last one before Close always. Out of range or not a number: an error.
func (r *Run) Progress(percent float64, message string) error {
	if math.IsNaN(percent) || percent < 0 || percent > 100 {
		return fmt.Errorf("progress of %v percent: want 0 to 100", percent)
	}
	if r == nil {
		return nil
	}
	line, err := json.Marshal(Progress{time.Now().UTC(), percent, message})
	if err != nil {
		return fmt.Errorf("progress: %w", err)
	}
	w, s := r.writer, r.buffers()
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.closed || w.stopped {
		return ErrClosed
	}
	line = append(line, '\n')
	s.report = line
	w.enqueue(s)
	return nil
}

// ripe writes the waiting report if its time has come, and returns the bytes written.
func (s *spool) ripe(now time.Time, config Config) int {
	if s.report == nil || !s.closed && now.Sub(s.reported) < config.ProgressEvery {
		return 0
	}
	n := 0
	for n < len(s.report) {
		n += s.write(Reports, s.report[n:], config.ChunkBytes, now)
	}
	s.report, s.reported = nil, now
	return n
}

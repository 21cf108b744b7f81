package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/schema/schematest"
)

// storm is three workers and two servers that are killed at random, each replaced by another at once.
type storm struct {
	*shell

	dir     string // where programs note their runs; stands in their command lines
	workers []*process
	servers []*process
	jobs    int
}

// Workers and servers are killed at random while commands run: ten times, for half an hour with PELTON_SCENARIOS=full. Every job
// completes, once, and its program got to its end; no run is left, nor a program.
func TestKilledAtRandom(t *testing.T) {
	t.Parallel()
	s := &storm{shell: newShell(t), dir: t.TempDir()}
	for range 2 {
		s.servers = append(s.servers, s.start("server", "--listen", ""))
	}
	for range 3 {
		s.workers = append(s.workers, s.worker())
	}
	begun := time.Now()
	for kills := 0; kills < 10 || pgtest.FullSize() && time.Since(begun) < 30*time.Minute; kills++ {
		s.enqueueSome(20)
		if kills%5 == 4 {
			s.killServer()
		} else {
			s.killWorker()
		}
	}
	s.settle()
	s.check()
	for _, p := range slices.Concat(s.workers, s.servers) {
		p.kill()
	}
	pgtest.Eventually(t, patience, func() bool { return len(s.programs()) == 0 }, "the programs to end: %v", s.programs())
}

func (s *storm) start(args ...string) *process {
	s.t.Helper()
	return launch(s.t, []string{"DATABASE_URL=" + s.url}, append(append(args, "--json"), quick...)...)
}

func (s *storm) worker() *process {
	s.t.Helper()
	return s.start("worker", "--queues", "default:10")
}

// enqueueSome enqueues programs that note their run when they have got to their end, each after another time.
func (s *storm) enqueueSome(n int) {
	s.t.Helper()
	s.jobs += n
	program := fmt.Sprintf("sleep 0.$((PELTON_JOB_ID %% 5)); echo $PELTON_RUN >> %s/$PELTON_JOB_ID", s.dir)
	args, err := json.Marshal(map[string]any{"command": program, "shell": true})
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.pool().Exec(s.t.Context(), `SELECT pelton.enqueue('command', $1::text::json) FROM generate_series(1, $2::integer)`,
		string(args), n); err != nil {
		s.t.Fatal(err)
	}
}

// killWorker kills one that has something to lose.
func (s *storm) killWorker() {
	s.t.Helper()
	var victim int
	pgtest.Retry(s.t, 2*patience, func(ctx context.Context) error {
		var pids []int
		err := s.pool().QueryRow(ctx, `SELECT coalesce(array_agg(DISTINCT e.pid), '{}') FROM pelton.job_lease l
			JOIN pelton.executor e ON e.id = l.executor`).Scan(&pids)
		if err != nil {
			return err
		}
		busy := slices.DeleteFunc([]int{0, 1, 2}, func(i int) bool { return !slices.Contains(pids, s.workers[i].cmd.Process.Pid) })
		if len(busy) == 0 {
			return fmt.Errorf("no worker has anything to do; %v have", pids)
		}
		victim = busy[rand.N(len(busy))]
		return nil
	})
	pause := 100 * time.Millisecond
	if pgtest.FullSize() { // a long storm must leave them time to get through
		pause = 2 * time.Second
	}
	<-time.After(rand.N(pause))
	s.workers[victim].kill()
	s.workers[victim] = s.worker()
}

func (s *storm) killServer() {
	s.t.Helper()
	victim := rand.N(len(s.servers))
	s.servers[victim].kill()
	s.servers[victim] = s.start("server", "--listen", "")
}

// settle waits for the end of all jobs. Those that wait because they were lost twice in a row are told not to.
func (s *storm) settle() {
	s.t.Helper()
	pgtest.Retry(s.t, 3*patience, func(ctx context.Context) error {
		if _, err := s.pool().Exec(ctx, `SELECT pelton.retry(job_id) FROM pelton.job_state WHERE state = 'retryable'`); err != nil {
			return err
		}
		var open, leases int
		err := s.pool().QueryRow(ctx, `SELECT (SELECT count(*) FROM pelton.job_state WHERE state NOT IN ('completed', 'discarded')),
			(SELECT count(*) FROM pelton.job_lease)`).Scan(&open, &leases)
		if err == nil && open+leases > 0 {
			err = fmt.Errorf("%d of %d jobs have not ended, %d leases are left", open, s.jobs, leases)
		}
		return err
	})
}

// Jobs that die with their process five times in a row are taken for its murderers, which a long storm makes some look like.
var (
	once   = regexp.MustCompile(`^((lost|returned) )*completed$`)
	poison = regexp.MustCompile(`^((lost|returned) )*(lost ){4}discarded$`)
)

func (s *storm) check() {
	s.t.Helper()
	rows, err := s.pool().Query(s.t.Context(), `SELECT job_id, string_agg(outcome::text, ' ' ORDER BY run) FROM pelton.job_attempt GROUP BY 1`)
	if err != nil {
		s.t.Fatal(err)
	}
	var id int64
	var outcomes string
	var ended, lost int
	_, err = pgx.ForEachRow(rows, []any{&id, &outcomes}, func() error {
		ended++
		lost += strings.Count(outcomes, "lost")
		if pgtest.FullSize() && poison.MatchString(outcomes) {
			return nil
		}
		if !once.MatchString(outcomes) {
			s.t.Errorf("job %d ended %q", id, outcomes)
			return nil
		}
		noted, err := os.ReadFile(filepath.Join(s.dir, strconv.FormatInt(id, 10)))
		if last := fmt.Sprintln(strings.Count(outcomes, " ") + 1); err != nil || !slices.Contains(strings.SplitAfter(string(noted), "\n"), last) {
			s.t.Errorf("job %d ended %q, its program noted the ends of runs %q: %v", id, outcomes, noted, err)
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	if ended != s.jobs || lost == 0 {
		s.t.Errorf("%d of %d jobs ended, %d runs were lost", ended, s.jobs, lost)
	}
	s.t.Logf("%d jobs, %d runs lost", ended, lost)
	schematest.Audit(s.t, s.pool())
}

// programs are the command lines of running programs of the storm's jobs, where /proc tells.
func (s *storm) programs() []string {
	s.t.Helper()
	var found []string
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err == nil && bytes.Contains(line, []byte(s.dir)) {
			found = append(found, string(line))
		}
	}
	return found
}

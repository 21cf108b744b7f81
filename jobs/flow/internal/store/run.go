package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Run is a run's row.
type Run struct {
	ID        int64           `json:"id"`
	VersionID int64           `json:"-"`
	Project   string          `json:"project"`
	Version   int             `json:"version"`
	Flow      string          `json:"flow"`
	Status    string          `json:"status"`
	Step      int64           `json:"-"`
	CreatedAt time.Time       `json:"created_at"`
	StartedAt *time.Time      `json:"started_at,omitempty"`
	EndedAt   *time.Time      `json:"ended_at,omitempty"`
	ResumedAt *time.Time      `json:"resumed_at,omitempty"` // when it last went on after an end
	CreatedBy string          `json:"created_by"`
	Before    *int64          `json:"before,omitempty"`
	Pipeline  int             `json:"pipeline,omitempty"`
	Priority  int             `json:"priority"`
	Options   json.RawMessage `json:"options"`
	ProjectID int64           `json:"-"`
	Format    string          `json:"-"`
	Followed  bool            `json:"-"`
	Reason    *string         `json:"reason,omitempty"` // why it is being killed, or ended otherwise than well
	Trace     *string         `json:"-"`                // what whoever follows it has kept
}

// Node is a node's row.
type Node struct {
	No        int32           `json:"-"`
	Path      string          `json:"node"`
	Status    string          `json:"status"`
	Try       int             `json:"try"`
	Attempt   int             `json:"attempt"`
	JobID     *int64          `json:"job_id,omitempty"`
	QueuedAt  *time.Time      `json:"queued_at,omitempty"`
	StartedAt *time.Time      `json:"started_at,omitempty"`
	EndedAt   *time.Time      `json:"ended_at,omitempty"`
	Template  *int32          `json:"-"`
	Index     *int32          `json:"-"`
	Item      *string         `json:"item,omitempty"`
	Reason    *string         `json:"reason,omitempty"`
	Held      *string         `json:"held_by,omitempty"`
	Outputs   json.RawMessage `json:"outputs,omitempty"`
	Jobs      []int64         `json:"earlier_jobs,omitempty"`
	Tried     []Attempt       `json:"tried,omitempty" db:"-"`            // of a job that has not ended, for people
	RetryAt   *time.Time      `json:"retry_at,omitempty" db:"-"`         // of one that waits for its next attempt, likewise
	LeftOut   bool            `json:"outputs_left_out,omitempty" db:"-"` // there are outputs, which were not read
}

// Attempt is one that a node's job has behind it, and another follows.
type Attempt struct {
	No        int32      `json:"-"`
	Attempt   int        `json:"attempt"` // from 0
	Outcome   string     `json:"outcome"` // errored, lost
	StartedAt *time.Time `json:"started_at,omitempty"`
	EndedAt   time.Time  `json:"ended_at"`
	Error     *string    `json:"error,omitempty"`
	RetryAt   *time.Time `json:"-"` // when the next one is due, if the job waits for it
}

// NewRun is what becomes a run.
type NewRun struct {
	VersionID int64
	Flow      string
	Status    string
	By        string
	Before    *int64
	Pipeline  int
	Priority  int
	Options   []byte
	Trace     string   // what whoever follows it wants kept; "": nothing
	Paths     []string // of its nodes
	Statuses  []string // of its nodes
}

// LockProjectID is LockProject by the project's id, and waits only for a moment: whoever starts runs in a transaction that stays open
// holds it. The error is then one of SQLSTATE 55P03.
func (s *Store) LockProjectID(ctx context.Context, tx pgx.Tx, id int64) error {
	if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '200ms'"); err != nil {
		return fmt.Errorf("set limits of a transaction: %w", err)
	}
	_, err := s.exec(ctx, tx, "lock_project_id", id)
	return err
}

// LockProject has the creations of runs of one project follow each other. Returns the project's id.
func (s *Store) LockProject(ctx context.Context, tx pgx.Tx, project string) (int64, error) {
	row, err := one[struct{ ID int64 }](ctx, s, tx, "lock_project", project)
	return row.ID, err
}

// LiveRuns lists the runs of a flow that have not ended, the oldest first.
func (s *Store) LiveRuns(ctx context.Context, db DB, project int64, flow string) ([]Run, error) {
	return all[Run](ctx, s, db, "live_runs", project, flow)
}

// CreateRun stores a run and its nodes.
func (s *Store) CreateRun(ctx context.Context, tx pgx.Tx, r NewRun) (int64, error) {
	row, err := one[struct{ ID int64 }](ctx, s, tx, "create_run",
		r.VersionID, r.Flow, r.Status, r.By, r.Before, r.Pipeline, r.Priority, string(r.Options), r.Trace)
	if err != nil {
		return 0, err
	}
	_, err = s.exec(ctx, tx, "create_nodes", row.ID, r.Paths, r.Statuses)
	return row.ID, err
}

// Lock locks a run's row and reads it. ErrNotFound if there is none.
func (s *Store) Lock(ctx context.Context, tx pgx.Tx, run int64) (Run, error) {
	if _, err := one[struct{ ID int64 }](ctx, s, tx, "lock_run_wait", run); err != nil {
		return Run{}, err
	}
	return s.Run(ctx, tx, run)
}

// TryLock is Lock that waits for nobody, and also tells the database's time. ErrNotFound also if somebody else has locked the row.
func (s *Store) TryLock(ctx context.Context, tx pgx.Tx, run int64) (r Run, now time.Time, err error) {
	row, err := one[struct{ Now time.Time }](ctx, s, tx, "lock_run", run)
	if err != nil {
		return Run{}, time.Time{}, err
	}
	r, err = s.Run(ctx, tx, run)
	return r, row.Now, err
}

// Run reads a run.
func (s *Store) Run(ctx context.Context, db DB, run int64) (Run, error) {
	return one[Run](ctx, s, db, "run", run)
}

// RunFilter selects runs; zero fields select all.
type RunFilter struct {
	Project, Flow, Status string
	Before                int64 // with ids below this
	Live                  bool
	IDs                   []int64  // nil: all
	Projects              []string // of one of these; nil: of any
}

// Runs lists runs, the newest first.
func (s *Store) Runs(ctx context.Context, f RunFilter, limit int) ([]Run, error) {
	return all[Run](ctx, s, s.Pool, "runs", f.Project, f.Flow, f.Status, f.Before, f.Live, limit, f.IDs, f.Projects)
}

// Nodes reads the nodes of a run in order.
func (s *Store) Nodes(ctx context.Context, db DB, run int64) ([]Node, error) {
	return all[Node](ctx, s, db, "nodes", run)
}

// AllOutputs is no bound of what is read of outputs.
const AllOutputs = -1

// ShownNodes is Nodes for people: a node whose job is being worked is RUNNING. It reads all, or the one with a path; outputs as long as those of the
// first nodes take so many bytes together, and then what else may be long is cut.
func (s *Store) ShownNodes(ctx context.Context, run int64, path string, outputs int) ([]Node, error) {
	type shown struct {
		Node
		LeftOut bool
	}
	list, err := all[shown](ctx, s, s.Pool, "shown_nodes", run, path, outputs)
	nodes := make([]Node, len(list))
	for i, n := range list {
		nodes[i], nodes[i].LeftOut = n.Node, n.LeftOut
	}
	return nodes, err
}

// NodeJob is a job of a node.
type NodeJob struct {
	Path string
	ID   int64
}

// NodeJobs lists jobs of a run's nodes, those of earlier tries too, in the order in which they were made: of the node with a path and those in it, or of
// all if it is "", from behind a job on.
func (s *Store) NodeJobs(ctx context.Context, run int64, path string, after int64, limit int) ([]NodeJob, error) {
	return all[NodeJob](ctx, s, s.Pool, "node_jobs", run, path, after, limit)
}

// HasJob tells whether a job is, or was, one of a run's nodes.
func (s *Store) HasJob(ctx context.Context, run, job int64) (bool, error) {
	found, err := column[bool](ctx, s, s.Pool, "has_job", run, job)
	return err == nil && found[0], err
}

// Tried lists the attempts that the jobs of a run's nodes have behind them while they have not ended, by node, the newest few of each; their errors are
// cut after so many characters, if that is not 0.
func (s *Store) Tried(ctx context.Context, run int64, cut int) ([]Attempt, error) {
	return all[Attempt](ctx, s, s.Pool, "tried", run, cut)
}

// QueuedJob is how a job stands that is queued.
type QueuedJob struct {
	Kind, Queue string
	Taken       bool // an executor has it
	Paused      bool // its queue is
	Worked      bool // a live executor works its kind
	Claimed     bool // such a one takes jobs of its queue
}

// QueuedJob reads how a job stands. ErrNotFound if there is none.
func (s *Store) QueuedJob(ctx context.Context, job int64) (QueuedJob, error) {
	return one[QueuedJob](ctx, s, s.Pool, "queued_job", job)
}

// WriteNodes stores nodes that changed.
func (s *Store) WriteNodes(ctx context.Context, tx pgx.Tx, run int64, nodes []Node) error {
	return s.putNodes(ctx, tx, "update_nodes", run, nodes)
}

// AddNodes stores nodes that are new.
func (s *Store) AddNodes(ctx context.Context, tx pgx.Tx, run int64, nodes []Node) error {
	return s.putNodes(ctx, tx, "add_nodes", run, nodes)
}

func (s *Store) putNodes(ctx context.Context, tx pgx.Tx, name string, run int64, nodes []Node) error {
	if len(nodes) == 0 {
		return nil
	}
	data, err := json.Marshal(columnsOf(nodes))
	if err != nil {
		return fmt.Errorf("encode nodes: %w", err)
	}
	_, err = s.exec(ctx, tx, name, run, string(data))
	return err
}

// nodeRecord is a node as json_to_recordset takes it.
type nodeRecord struct {
	No        int32           `json:"no"`
	Path      string          `json:"path"`
	Status    string          `json:"status"`
	Try       int             `json:"try"`
	Attempt   int             `json:"attempt"`
	JobID     *int64          `json:"job_id"`
	QueuedAt  *time.Time      `json:"queued_at"`
	StartedAt *time.Time      `json:"started_at"`
	EndedAt   *time.Time      `json:"ended_at"`
	Template  *int32          `json:"template"`
	Index     *int32          `json:"index"`
	Item      *string         `json:"item"`
	Reason    *string         `json:"reason"`
	Held      *string         `json:"held"`
	Outputs   json.RawMessage `json:"outputs"`
	Jobs      []int64         `json:"jobs"`
	Tried     []Attempt       `json:"-"`
	RetryAt   *time.Time      `json:"-"`
	LeftOut   bool            `json:"-"`
}

func columnsOf(nodes []Node) []nodeRecord {
	list := make([]nodeRecord, len(nodes))
	for i, n := range nodes {
		list[i] = nodeRecord(n)
		if len(n.Outputs) == 0 {
			list[i].Outputs = json.RawMessage("null")
		}
	}
	return list
}

// WriteRun stores a run's status and the reason of it, and raises its step. now is the database's time of the step, and becomes that of the run's start.
func (s *Store) WriteRun(ctx context.Context, tx pgx.Tx, run int64, status string, reason *string, started, ended bool, now time.Time) error {
	_, err := s.exec(ctx, tx, "write_run", run, status, started, ended, now, reason)
	return err
}

// Report is something that is to happen to a run.
type Report struct {
	Place     string // where its row is
	Node      *int32
	JobID     *int64
	Outcome   *string // of a job
	Attempt   *int16
	StartedAt *time.Time
	EndedAt   *time.Time
	Error     *string
	Output    []byte
	Action    *string // of a person or the clock
	Args      []byte
	Run       int64
}

// Reports reads what is to happen to a run, in order, at most n, from the floor on.
func (s *Store) Reports(ctx context.Context, tx pgx.Tx, run, floor int64, n int) ([]Report, error) {
	return all[Report](ctx, s, tx, "reports", run, n, floor)
}

// DeleteReports deletes reports that were applied.
func (s *Store) DeleteReports(ctx context.Context, tx pgx.Tx, reports []Report) error {
	places := make([]string, len(reports))
	for i := range reports {
		places[i] = reports[i].Place
	}
	_, err := s.exec(ctx, tx, "delete_reports", places)
	return err
}

// Ask adds an action to what is to happen to a run. node is -1 for the run as a whole.
func (s *Store) Ask(ctx context.Context, db DB, run int64, node int, action string, args []byte) error {
	var no *int
	if node >= 0 {
		no = &node
	}
	if args == nil {
		args = []byte("null")
	}
	_, err := s.exec(ctx, db, "ask", run, no, action, string(args))
	return err
}

// Asked tells whether something is still to happen to a run.
func (s *Store) Asked(ctx context.Context, run, floor int64) (bool, error) {
	row, err := one[struct{ Asked bool }](ctx, s, s.Pool, "asked", run, floor)
	return row.Asked, err
}

// Waiting lists the runs that the next n reports from an id on wait for, the longest waiting first. next is the id to go on from; 0 if
// those were the last.
func (s *Store) Waiting(ctx context.Context, from int64, n int) (runs []int64, next int64, err error) {
	rows, err := all[struct{ Run, Last, Count int64 }](ctx, s, s.Pool, "waiting", from, n)
	for _, r := range rows {
		runs = append(runs, r.Run)
		if r.Count == int64(n) {
			next = r.Last + 1
		}
	}
	return runs, next, err
}

// DropOrphans deletes the reports of a run that is gone.
func (s *Store) DropOrphans(ctx context.Context, db DB, run int64) error {
	_, err := s.exec(ctx, db, "drop_orphans", run)
	return err
}

// Prepare has a run that waits in its flow's queue count as one that begins. It waits for a lock only for a moment.
func (s *Store) Prepare(ctx context.Context, tx pgx.Tx, run int64) error {
	_, err := s.exec(ctx, tx, "prepare_run", run)
	return err
}

// Restart has a run that has ended wait to begin once more. The locks of its row and of its project must be held.
func (s *Store) Restart(ctx context.Context, tx pgx.Tx, run int64, status string, before *int64, pipeline int) error {
	_, err := s.exec(ctx, tx, "restart_run", run, status, before, pipeline)
	return err
}

// Unfollow has the live runs that follow a run follow none, and lists them. The project's lock must be held.
func (s *Store) Unfollow(ctx context.Context, tx pgx.Tx, run Run) ([]int64, error) {
	return column[int64](ctx, s, tx, "unfollow", run.ProjectID, run.Flow, run.ID)
}

// Wishes lists what is still to be done of what people asked of a run as a whole, in order. Its row's lock must be held.
func (s *Store) Wishes(ctx context.Context, tx pgx.Tx, run int64) ([]string, error) {
	return column[string](ctx, s, tx, "wishes", run)
}

// IsErased tells whether a job of the run's nodes was erased.
func (s *Store) IsErased(ctx context.Context, tx pgx.Tx, run int64) (bool, error) {
	found, err := column[bool](ctx, s, tx, "is_erased", run)
	return err == nil && len(found) > 0 && found[0], err
}

// Timer is something that is to happen at a time.
type Timer struct {
	Node  int // -1: the run
	What  string
	After time.Duration // from now, by the database's clock
	Args  []byte
	Keep  bool // one that is set stays as it is
}

// SetTimers sets or moves timers of a run.
func (s *Store) SetTimers(ctx context.Context, tx pgx.Tx, run int64, timers []Timer) error {
	for _, t := range timers {
		args := t.Args
		if args == nil {
			args = []byte("null")
		}
		if _, err := s.exec(ctx, tx, "set_timer", run, t.Node, t.What, t.After, string(args), t.Keep); err != nil {
			return err
		}
	}
	return nil
}

// DroppedTimer is a timer that will not come.
type DroppedTimer struct {
	Node int // -1: the run
	What string
	Due  bool // its time has come
}

// DropTimers deletes the timers of a run, and lists them.
func (s *Store) DropTimers(ctx context.Context, tx pgx.Tx, run int64) ([]DroppedTimer, error) {
	return all[DroppedTimer](ctx, s, tx, "drop_timers", run)
}

// FireTimers turns due timers into actions, at most n, and returns how many.
func (s *Store) FireTimers(ctx context.Context, n int) (int64, error) {
	return s.exec(ctx, s.Pool, "fire_timers", n)
}

// Seen is what an idle scheduler wants to know.
type Seen struct {
	Waiting bool    // reports wait
	Live    bool    // runs are live
	Next    float64 // seconds until the next timer is due; negative: none is set
	Newest  int64   // row of floor
}

// Look reads what there is to do, reports from the floor on. Unless it is thorough, it takes a run to be live, and does not see timers that
// are overdue for minutes.
func (s *Store) Look(ctx context.Context, floor int64, thorough bool) (Seen, error) {
	return one[Seen](ctx, s, s.Pool, "look", floor, thorough)
}

// Miss is a limit of time that was missed.
type Miss struct {
	Within time.Duration
	Node   string // path; empty: the run
	Detail string
}

// AddMisses notes limits that a run or its nodes missed.
func (s *Store) AddMisses(ctx context.Context, tx pgx.Tx, run *Run, misses []Miss) error {
	for _, m := range misses {
		if _, err := s.exec(ctx, tx, "add_miss", run.ID, m.Within, run.Project, run.Flow, m.Node, m.Detail); err != nil {
			return err
		}
	}
	return nil
}

// DropLetters removes the dead letters of jobs, if there are any.
func (s *Store) DropLetters(ctx context.Context, tx pgx.Tx, jobs []int64) error {
	if len(jobs) == 0 {
		return nil
	}
	_, err := s.exec(ctx, tx, "drop_letters", jobs)
	return err
}

// Follow notes that a run is followed by a later one. Its row's lock must be held.
func (s *Store) Follow(ctx context.Context, tx pgx.Tx, run int64) error {
	_, err := s.exec(ctx, tx, "follow", run)
	return err
}

// Followers lists the live runs that follow a run.
func (s *Store) Followers(ctx context.Context, tx pgx.Tx, run Run) ([]int64, error) {
	return column[int64](ctx, s, tx, "followers", run.ProjectID, run.Flow, run.ID)
}

// Killing lists the jobs of live runs' nodes that are to be cancelled and have not ended.
func (s *Store) Killing(ctx context.Context) ([]int64, error) {
	return column[int64](ctx, s, s.Pool, "killing")
}

// ReportMissed finds jobs of live runs' nodes that ended without a report, as those do that a person cancelled while they waited,
// or the reaper discarded, or whose row is gone, and reports them. Returns how many.
func (s *Store) ReportMissed(ctx context.Context, floor int64) (int64, error) {
	return s.exec(ctx, s.Pool, "report_missed", floor)
}

// Kinds lists the kinds that live executors work.
func (s *Store) Kinds(ctx context.Context) ([]string, error) {
	return column[string](ctx, s, s.Pool, "kinds")
}

// Audit records what a person did to a run.
func (s *Store) Audit(ctx context.Context, db DB, actor, action, target string, before, after any) error {
	encode := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			return "null"
		}
		return string(b)
	}
	_, err := s.exec(ctx, db, "audit", actor, action, target, encode(before), encode(after))
	return err
}

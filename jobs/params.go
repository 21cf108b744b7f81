package jobs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs/internal/state"
	"github.com/peltonq/pelton/jobs/internal/store"
)

// InvalidJobError tells why a job was refused before anything was stored.
type InvalidJobError struct {
	Index int    // of the job in the call
	Kind  string // of the job, may be empty
	Err   error

	alone bool // the call was of one job
}

func (e *InvalidJobError) Error() string {
	if e.alone {
		return fmt.Sprintf("job of kind %q: %v", e.Kind, e.Err)
	}
	return fmt.Sprintf("job %d of kind %q: %v", e.Index, e.Kind, e.Err)
}

func (e *InvalidJobError) Unwrap() error { return e.Err }

// CheckInsert tells everything for which Insert would refuse a job, without a database: hooks and middleware have no say. opts may be nil.
// The error is an *InvalidJobError.
func CheckInsert(args river.JobArgs, opts *river.InsertOpts) error {
	c := &Client{config: &Config{MaxAttempts: MaxAttemptsDefault}}
	p, err := c.insertParams(args, opts)
	if err == nil {
		err = checkParams(p)
	}
	if err != nil {
		return &InvalidJobError{Kind: kindOf(args), Err: err, alone: true}
	}
	return nil
}

const (
	maxKindBytes = 128
	maxTagBytes  = 255
)

var tagPattern = regexp.MustCompile(`\A[\w][\w\-]+[\w]\z`)

// insertParams works out what to insert: options of the call first, then those of the args type, then the client's defaults.
func (c *Client) insertParams(args river.JobArgs, opts *river.InsertOpts) (*rivertype.JobInsertParams, error) {
	if args == nil {
		return nil, errors.New("args are nil")
	}
	if opts == nil {
		opts = &river.InsertOpts{}
	}
	var own river.InsertOpts
	if a, ok := args.(river.JobArgsWithInsertOpts); ok {
		own = a.InsertOpts()
	}
	encoded, err := encodeArgs(args)
	if err != nil {
		return nil, fmt.Errorf("encode args: %w", err)
	}
	p := &rivertype.JobInsertParams{
		Args:        args,
		EncodedArgs: encoded,
		Kind:        args.Kind(),
		MaxAttempts: cmp.Or(opts.MaxAttempts, own.MaxAttempts, c.config.MaxAttempts),
		Metadata:    opts.Metadata,
		Priority:    cmp.Or(opts.Priority, own.Priority, PriorityDefault),
		Queue:       cmp.Or(opts.Queue, own.Queue, QueueDefault),
		State:       rivertype.JobStateAvailable,
		Tags:        opts.Tags,
	}
	if p.Tags == nil {
		p.Tags = own.Tags
	}
	if len(p.Metadata) == 0 {
		p.Metadata = own.Metadata
	}
	if due := cmp.Or(opts.ScheduledAt, own.ScheduledAt); !due.IsZero() {
		p.ScheduledAt = &due
		p.State = rivertype.JobStateScheduled
	}
	if opts.Pending || own.Pending {
		p.State = rivertype.JobStatePending
	}
	unique := opts.UniqueOpts
	if !isUnique(&unique) {
		unique = own.UniqueOpts
	}
	raw, _ := args.(RawArgs)
	switch {
	case isUnique(&unique) && raw.UniqueKey != "":
		return nil, errors.New("UniqueOpts and RawArgs.UniqueKey are both given, want one of them")
	case isUnique(&unique):
		if err := checkUnique(&unique); err != nil {
			return nil, err
		}
		if p.UniqueKey, p.UniqueStates, err = uniqueKey(&unique, p, time.Now()); err != nil {
			return nil, err
		}
	case raw.UniqueKey != "":
		p.UniqueKey, p.UniqueStates = namedKey(p.Kind, raw.UniqueKey)
	}
	return p, nil
}

// encodeArgs is json.Marshal, as River has it, but leaves RawArgs as they are written: Marshal would take out white space and write
// <, > and & as escapes.
func encodeArgs(args river.JobArgs) ([]byte, error) {
	raw, ok := args.(RawArgs)
	if !ok || len(raw.JSON) == 0 {
		return json.Marshal(args)
	}
	if !json.Valid(raw.JSON) {
		return nil, errors.New("RawArgs.JSON is not valid JSON")
	}
	return raw.JSON, nil
}

// checkParams tells everything for which a job could not be stored or worked. It runs after hooks and middleware had their say.
func checkParams(p *rivertype.JobInsertParams) error {
	var faults []error
	fault := func(is bool, format string, args ...any) {
		if is {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	fault(p.Kind == "" || len(p.Kind) > maxKindBytes, "kind is %d bytes, want 1 to %d", len(p.Kind), maxKindBytes)
	fault(!utf8.ValidString(p.Kind) || strings.Contains(p.Kind, "\x00"), "kind is not valid text")
	fault(strings.ContainsFunc(p.Kind, unicode.IsControl), "kind has characters that control a terminal, as a line feed: want letters, digits and signs")
	fault(p.Priority < 1 || p.Priority > 4, "priority is %d, want 1 (first) to 4", p.Priority)
	fault(p.MaxAttempts < 1 || p.MaxAttempts > maxAttemptsLimit, "max attempts are %d, want 1 to %d", p.MaxAttempts, maxAttemptsLimit)
	faults = append(faults, checkQueueName(p.Queue), checkEncoded("args", p.EncodedArgs, MaxArgsBytes), checkMetadata(p.Metadata))
	for _, tag := range p.Tags {
		fault(len(tag) > maxTagBytes || !tagPattern.MatchString(tag), "tag %q: want 3 to %d letters, digits, _ or inner -", tag, maxTagBytes)
	}
	if at := p.ScheduledAt; at != nil {
		faults = append(faults, checkScheduled(*at))
	}
	return errors.Join(faults...)
}

func checkScheduled(at time.Time) error {
	if year := at.UTC().Year(); year < 1 || year > 9999 {
		return fmt.Errorf("scheduled time %v is out of range: want a year from 1 to 9999", at)
	}
	return nil
}

func checkMetadata(m []byte) error {
	if len(m) == 0 {
		return nil
	}
	if err := checkJSON("metadata", m, MaxArgsBytes); err != nil {
		return err
	}
	if bytes.TrimSpace(m)[0] != '{' {
		return errors.New("metadata is not a JSON object")
	}
	return nil
}

// ownKeys begin the keys of metadata that are Pelton's own.
const ownKeys = "pelton:"

// CheckMetadata refuses metadata with keys that begin with "pelton:", by which Pelton's own parts tell each other things: for whoever
// enqueues what others send. JSON that is no object it leaves to CheckInsert.
func CheckMetadata(metadata []byte) error {
	var keys map[string]json.RawMessage
	_ = json.Unmarshal(metadata, &keys)
	return checkKeys(keys)
}

func checkKeys[T any](keys map[string]T) error {
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if strings.HasPrefix(key, ownKeys) {
			return fmt.Errorf("metadata key %q: keys that begin with %s are Pelton's own", key, ownKeys)
		}
	}
	return nil
}

// newJob is what goes into the database for p.
func newJob(p *rivertype.JobInsertParams) store.NewJob {
	j := store.NewJob{
		Kind:         p.Kind,
		Args:         p.EncodedArgs,
		Queue:        p.Queue,
		Priority:     int16(p.Priority),
		MaxAttempts:  int16(p.MaxAttempts),
		Due:          p.ScheduledAt,
		Pending:      p.State == rivertype.JobStatePending,
		Tags:         p.Tags,
		UniqueKey:    p.UniqueKey,
		UniqueStates: int16(p.UniqueStates),
	}
	if len(p.Metadata) > 0 && string(p.Metadata) != "{}" {
		j.Metadata = p.Metadata
	}
	return j
}

// insertedRow is the job row as it now is.
func insertedRow(p *rivertype.JobInsertParams, in store.Inserted) *rivertype.JobRow {
	row := &rivertype.JobRow{
		ID:           in.ID,
		CreatedAt:    in.CreatedAt,
		EncodedArgs:  p.EncodedArgs,
		Errors:       []rivertype.AttemptError{},
		AttemptedBy:  []string{},
		Kind:         p.Kind,
		MaxAttempts:  p.MaxAttempts,
		Metadata:     p.Metadata,
		Priority:     p.Priority,
		Queue:        p.Queue,
		ScheduledAt:  in.CreatedAt,
		State:        rivertype.JobState(in.State),
		Tags:         p.Tags,
		UniqueKey:    p.UniqueKey,
		UniqueStates: state.FromBits(p.UniqueStates),
	}
	if p.ScheduledAt != nil {
		row.ScheduledAt = *p.ScheduledAt
	}
	if len(row.Metadata) == 0 {
		row.Metadata = []byte("{}")
	}
	if row.Tags == nil {
		row.Tags = []string{}
	}
	return row
}

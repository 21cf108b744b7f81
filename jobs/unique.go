package jobs

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/jobs/internal/state"
)

// uniqueKey computes the key and the states of a unique job as River does (github.com/riverqueue/river, internal/dbunique), so
// that jobs enqueued by either agree. now stands in for the scheduled time of a job without one.
func uniqueKey(opts *river.UniqueOpts, params *rivertype.JobInsertParams, now time.Time) ([]byte, byte, error) {
	var text bytes.Buffer
	if !opts.ExcludeKind {
		text.WriteString("&kind=" + params.Kind)
	}
	if opts.ByArgs {
		args, err := uniqueArgs(params)
		if err != nil {
			return nil, 0, err
		}
		text.WriteString("&args=")
		text.Write(args)
	}
	if opts.ByPeriod != 0 {
		at := now
		if params.ScheduledAt != nil {
			at = *params.ScheduledAt
		}
		text.WriteString("&period=" + at.Truncate(opts.ByPeriod).UTC().Format(time.RFC3339))
	}
	if opts.ByQueue {
		text.WriteString("&queue=" + params.Queue)
	}
	states := opts.ByState
	if len(states) == 0 {
		states = rivertype.UniqueOptsByStateDefault()
	}
	sum := sha256.Sum256(text.Bytes())
	return sum[:], state.Bits(states), nil
}

// namedKey is the key of a job that is unique by a text of the caller's. No key that uniqueKey makes is the same: they begin
// otherwise.
func namedKey(kind, name string) (key []byte, states byte) {
	sum := sha256.Sum256([]byte("&named=" + name + "&kind=" + kind))
	return sum[:], state.Bits(rivertype.UniqueOptsByStateDefault())
}

// isUnique tells whether any unique property is set.
func isUnique(o *river.UniqueOpts) bool {
	return o.ByArgs || o.ByPeriod != 0 || o.ByQueue || o.ByState != nil || o.ExcludeKind
}

// checkUnique refuses what River refuses.
func checkUnique(o *river.UniqueOpts) error {
	if o.ByPeriod != 0 && o.ByPeriod < time.Second {
		return fmt.Errorf("UniqueOpts.ByPeriod is %v, want at least 1 second", o.ByPeriod)
	}
	if o.ExcludeKind && !o.ByArgs && !o.ByQueue && o.ByPeriod == 0 {
		return errors.New("UniqueOpts.ExcludeKind needs ByArgs, ByQueue or ByPeriod beside it")
	}
	if len(o.ByState) == 0 {
		return nil
	}
	for _, s := range o.ByState {
		if !slices.Contains(rivertype.JobStates(), s) {
			return fmt.Errorf("UniqueOpts.ByState has unknown state %q", s)
		}
	}
	var missing []string
	for _, s := range []rivertype.JobState{
		rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning, rivertype.JobStateScheduled,
	} {
		if !slices.Contains(o.ByState, s) {
			missing = append(missing, string(s))
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("UniqueOpts.ByState must hold %s too", strings.Join(missing, ", "))
	}
	return nil
}

// uniqueArgs is the part of the encoded args that counts: the fields tagged river:"unique", else all, keys sorted, values as
// they were encoded.
func uniqueArgs(params *rivertype.JobInsertParams) ([]byte, error) {
	paths, err := uniquePaths(params.Args)
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return sortedObject(params.EncodedArgs)
	}
	var picked object
	for _, path := range paths {
		if value, ok := lookUp(params.EncodedArgs, path); ok {
			picked.set(path, value)
		}
	}
	if len(picked.fields) == 0 {
		return nil, nil
	}
	return picked.append(nil), nil
}

// object is a JSON object under construction whose keys stay in the order they came.
type object struct {
	fields []field
}

type field struct {
	key   string
	value json.RawMessage
	inner *object
}

func (o *object) set(path []string, value json.RawMessage) {
	i := slices.IndexFunc(o.fields, func(f field) bool { return f.key == path[0] })
	if i < 0 {
		i = len(o.fields)
		o.fields = append(o.fields, field{key: path[0]})
	}
	f := &o.fields[i]
	if len(path) == 1 {
		f.value = value
		return
	}
	if f.inner == nil {
		f.inner = &object{}
	}
	f.inner.set(path[1:], value)
}

func (o *object) append(b []byte) []byte {
	b = append(b, '{')
	for i, f := range o.fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendKey(b, f.key), ':')
		if f.inner != nil {
			b = f.inner.append(b)
		} else {
			b = append(b, f.value...)
		}
	}
	return append(b, '}')
}

// appendKey writes a key between quotes as it is, or as encoding/json writes it where it holds a byte that needs care.
func appendKey(b []byte, key string) []byte {
	plain := func(r rune) bool { return r >= ' ' && r <= 0x7f && r != '"' && r != '\\' }
	if strings.IndexFunc(key, func(r rune) bool { return !plain(r) }) < 0 {
		return append(append(append(b, '"'), key...), '"')
	}
	encoded, _ := json.Marshal(key)
	return append(b, encoded...)
}

// sortedObject rewrites a JSON object with its top-level keys sorted; the first of equal keys counts.
func sortedObject(encoded []byte) ([]byte, error) {
	members, err := members(encoded)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(members, func(a, b field) int { return strings.Compare(a.key, b.key) })
	o := object{fields: slices.CompactFunc(members, func(a, b field) bool { return a.key == b.key })}
	return o.append(nil), nil
}

// lookUp finds the raw value at a path of keys.
func lookUp(encoded json.RawMessage, path []string) (json.RawMessage, bool) {
	for _, key := range path {
		all, err := members(encoded)
		if err != nil {
			return nil, false
		}
		i := slices.IndexFunc(all, func(f field) bool { return f.key == key })
		if i < 0 {
			return nil, false
		}
		encoded = all[i].value
	}
	return encoded, true
}

var errNotObject = errors.New("unique args must encode a JSON object")

// members lists the top-level keys and raw values of a JSON object; an empty array counts as an empty object.
func members(encoded []byte) ([]field, error) {
	if trimmed := bytes.TrimSpace(encoded); len(trimmed) == 0 || string(trimmed) == "[]" {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(encoded))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, errNotObject
	}
	var all []field
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("unique args: %w", err)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, fmt.Errorf("unique args: %w", err)
		}
		name, _ := key.(string) // an object's keys are strings
		all = append(all, field{key: name, value: value})
	}
	return all, nil
}

package command

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
)

// Kind is the kind of command jobs.
const Kind = "command"

// Args say what a command job runs. They are checked when they are encoded, so that a bad one is refused by Insert, and again
// when they are decoded; unknown fields are refused.
type Args struct {
	// Command is the program to run. Either this or Commands.
	Command Command `json:"command,omitzero"`

	// Commands are run in turn until one does not exit with 0.
	Commands []Command `json:"commands,omitempty"`

	// Shell has the text of each command run by a shell (sh -c), which then does the splitting, pipes and variables.
	Shell bool `json:"shell,omitempty"`

	// Env is added to the worker's base environment. PELTON_JOB_ID, PELTON_RUN and PELTON_ATTEMPT are set by the worker.
	Env map[string]string `json:"env,omitempty"`

	// Dir is the working directory. Defaults to the worker's; a relative one is below that.
	Dir string `json:"dir,omitempty"`

	// Timeout ends the whole run after this time. Zero: never.
	Timeout Duration `json:"timeout,omitzero"`

	// KillGrace is the time between SIGTERM and SIGKILL. Zero: the worker's.
	KillGrace Duration `json:"kill_grace,omitzero"`
}

// Kind implements river.JobArgs.
func (Args) Kind() string { return Kind }

// Parse reads and checks the JSON of a command job.
func Parse(data []byte) (Args, error) {
	var a Args
	if err := a.UnmarshalJSON(data); err != nil {
		return Args{}, err
	}
	return a, nil
}

// Validate joins everything that is wrong with the args.
func (a Args) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	switch {
	case a.Command.isZero() && len(a.Commands) == 0:
		fault("command is missing: give a command, or a list of commands")
	case !a.Command.isZero() && len(a.Commands) > 0:
		fault("command and commands are both given, want one of them")
	}
	for i, c := range a.list() {
		if err := c.check(a.Shell); err != nil {
			fault("command %d: %w", i+1, err)
		}
	}
	for key, value := range a.Env {
		if key == "" || strings.ContainsAny(key, "=\x00") {
			fault("env: %q is not a variable's name", key)
		}
		if strings.Contains(value, "\x00") {
			fault("env: the value of %s holds a NUL byte", key)
		}
	}
	if strings.Contains(a.Dir, "\x00") {
		fault("dir holds a NUL byte")
	}
	if a.Timeout < 0 {
		fault("timeout is %v, want a positive time, or none", a.Timeout)
	}
	if a.KillGrace < 0 {
		fault("kill_grace is %v, want a positive time, or none", a.KillGrace)
	}
	slices.SortFunc(faults, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(faults...)
}

// list returns the commands in turn.
func (a Args) list() []Command {
	if len(a.Commands) > 0 {
		return a.Commands
	}
	if a.Command.isZero() {
		return nil
	}
	return []Command{a.Command}
}

type plainArgs Args

// MarshalJSON refuses args that Validate refuses.
func (a Args) MarshalJSON() ([]byte, error) {
	if err := a.Validate(); err != nil {
		return nil, fmt.Errorf("args of a command job: %w", err)
	}
	return json.Marshal(plainArgs(a))
}

// UnmarshalJSON refuses unknown fields and what Validate refuses.
func (a *Args) UnmarshalJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	var p plainArgs
	if err := d.Decode(&p); err != nil {
		return fmt.Errorf("args of a command job: %w", decodeFault(data, err))
	}
	if d.More() {
		return errors.New("args of a command job: more than one JSON value")
	}
	if err := Args(p).Validate(); err != nil {
		return fmt.Errorf("args of a command job: %w", err)
	}
	*a = Args(p)
	return nil
}

// fieldNames are those of Args in JSON.
var fieldNames = sync.OnceValue(func() []string {
	var names []string
	for f := range reflect.TypeFor[Args]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
})

// decodeFault says what the args should be instead of which Go types they are not.
func decodeFault(data []byte, err error) error {
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) == nil {
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if !slices.Contains(fieldNames(), name) && strings.Contains(err.Error(), "unknown field") {
				return fmt.Errorf("unknown field %q, want one of %s", name, strings.Join(fieldNames(), ", "))
			}
		}
	}
	shape, ok := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case ok && shape.Field == "":
		return fmt.Errorf(`a JSON %s, want an object as {"command": "echo hello"}`, shape.Value)
	case ok:
		want := map[reflect.Kind]string{reflect.String: "text", reflect.Bool: "true or false", reflect.Slice: "a list", reflect.Map: "an object of texts"}
		return fmt.Errorf("field %q is a JSON %s, want %s", shape.Field, shape.Value, cmp.Or(want[shape.Type.Kind()], "another value"))
	}
	return err
}

// Duration is a time.Duration that JSON holds as text ("90s", "1h30m"); a number is taken for seconds.
type Duration time.Duration

func (d Duration) String() string { return time.Duration(d).String() }

// MarshalJSON writes the duration as text.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON reads text or a number of seconds.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return err
	}
	switch v := v.(type) {
	case string:
		t, err := time.ParseDuration(v)
		if err != nil {
			return fmt.Errorf("duration %q: want a number of seconds, or text as \"90s\" or \"1h30m\"", v)
		}
		*d = Duration(t)
	case float64:
		if limit := float64(1<<63-1) / float64(time.Second); v > limit || v < -limit {
			return fmt.Errorf("duration of %v seconds is out of range", v)
		}
		*d = Duration(v * float64(time.Second))
	default:
		return fmt.Errorf("duration %s: want a number of seconds, or text as \"90s\" or \"1h30m\"", data)
	}
	return nil
}

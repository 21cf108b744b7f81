package command_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/jobs/command"
)

var _ river.JobArgs = command.Args{}

func TestArgsAsJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]command.Args{
		`{"command":"echo 'a  b'"}`:          {Command: command.Line("echo 'a  b'")},
		`{"command":["echo","a  b",""]}`:     {Command: command.Argv("echo", "a  b", "")},
		`{"command":"a | b","shell":true}`:   {Command: command.Line("a | b"), Shell: true},
		`{"commands":["one",["two","x"]]}`:   {Commands: []command.Command{command.Line("one"), command.Argv("two", "x")}},
		`{"command":"x","timeout":"1h30m"}`:  {Command: command.Line("x"), Timeout: command.Duration(90 * time.Minute)},
		`{"command":"x","timeout":1.5}`:      {Command: command.Line("x"), Timeout: command.Duration(1500 * time.Millisecond)},
		`{"command":"x","kill_grace":"10s"}`: {Command: command.Line("x"), KillGrace: command.Duration(10 * time.Second)},
		`{"command":"x","dir":"/tmp","env":{"A":"1","B":""}}`: {
			Command: command.Line("x"), Dir: "/tmp", Env: map[string]string{"A": "1", "B": ""},
		},
	} {
		got, err := command.Parse([]byte(text))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v: %v", text, got, want, err)
			continue
		}
		data, err := json.Marshal(got)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if again, err := command.Parse(data); err != nil || !reflect.DeepEqual(again, want) {
			t.Errorf("%s became %s: %v", text, data, err)
		}
	}
}

func TestBadArgsAreRefusedReadably(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{}`:                                     "command is missing",
		`{"command":""}`:                         "command is missing",
		`{"command":"  "}`:                       "names no program",
		`{"command":[]}`:                         "names no program",
		`{"command":["","x"]}`:                   "names no program",
		`{"command":["x",1]}`:                    "element 2 is not a string",
		`{"command":{"x":1}}`:                    "want a string or an array",
		`{"command":"x","commands":["y"]}`:       "both given",
		`{"command":"echo 'a"}`:                  "quote ' at offset 5 is not closed",
		`{"command":["x"],"shell":true}`:         "shell needs the command as text",
		`{"command":" ","shell":true}`:           "is empty",
		`{"command":"x","tiemout":"1s"}`:         `unknown field "tiemout", want one of command, commands, `,
		`{"command":"x","timeout":"soon"}`:       "want a number of seconds",
		`{"command":"x","timeout":-1}`:           "timeout is -1s",
		`{"command":"x","timeout":1e300}`:        "out of range",
		`{"command":"x","kill_grace":"-2s"}`:     "kill_grace is -2s",
		`{"command":"x","env":{"A=B":"1"}}`:      "not a variable's name",
		`{"command":"x","env":{"A":"\u0000"}}`:   "NUL byte",
		`{"command":"x\u0000y"}`:                 "NUL byte",
		`{"command":"x","dir":"\u0000"}`:         "NUL byte",
		`{"commands":["x","'"]}`:                 "command 2: the quote",
		`["x"]`:                                  `a JSON array, want an object as {"command": "echo hello"}`,
		`{"command":"x","dir":1}`:                `field "dir" is a JSON number, want text`,
		`{"command":"x","shell":"y"}`:            `field "shell" is a JSON string, want true or false`,
		`{"command":"x","env":{"A":1}}`:          `is a JSON number, want text`,
		`{"command":"x"} {"command":"y"}`:        "more than one",
		`{"command":"x"`:                         "unexpected",
		`{"timeout":-1,"env":{"":"x"},"dir":""}`: "timeout is -1s",
	} {
		if _, err := command.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", text, err, want)
		}
	}
	if _, err := json.Marshal(command.Args{}); err == nil || !strings.Contains(err.Error(), "command is missing") {
		t.Errorf("encoding empty args: %v", err)
	}
}

func FuzzArgs(f *testing.F) {
	f.Add(`{"command":"echo 'a  b' \"c\""}`)
	f.Add(`{"commands":["a",["b","c"]],"shell":false,"env":{"A":"é"},"timeout":12.5,"kill_grace":"1m"}`)
	f.Add(`{"command":"a","commands":[],"env":{}}`)
	f.Fuzz(func(t *testing.T, text string) {
		args, err := command.Parse([]byte(text))
		if err != nil {
			return
		}
		if len(args.Env) == 0 { // an empty one is not written
			args.Env = nil
		}
		if len(args.Commands) == 0 {
			args.Commands = nil
		}
		data, err := json.Marshal(args)
		if err != nil {
			t.Fatalf("%s was read, but cannot be written: %v", text, err)
		}
		again, err := command.Parse(data)
		if err != nil || !reflect.DeepEqual(args, again) {
			t.Fatalf("%s became %s: %v", text, data, err)
		}
	})
}

func TestWorkerTimeout(t *testing.T) {
	t.Parallel()
	w := command.NewWorker(command.Config{})
	if got := w.Timeout(&river.Job[command.Args]{}); got != -1 {
		t.Errorf("without a timeout: %v", got)
	}
	if got := w.Timeout(&river.Job[command.Args]{Args: command.Args{Timeout: command.Duration(time.Hour)}}); got != time.Hour {
		t.Errorf("with an hour: %v", got)
	}
}

func TestExitErrorSaysHow(t *testing.T) {
	t.Parallel()
	var err error = &command.ExitError{Program: "x", ExitCode: 137, Signal: "SIGKILL", Stderr: "oh"}
	var exit *command.ExitError
	if want := "program \"x\" was ended by SIGKILL; its last lines on stderr:\noh"; !errors.As(err, &exit) || err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}

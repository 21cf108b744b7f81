package command_test

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/peltonq/pelton/jobs/command"
)

func ExampleArgs() {
	args := command.Args{
		Command: command.Argv("convert", "it's.png", "out file.jpg"),
		Timeout: command.Duration(time.Hour),
	}
	data, err := json.Marshal(args)
	fmt.Println(string(data), err)
	// Output: {"command":["convert","it's.png","out file.jpg"],"timeout":"1h0m0s"} <nil>
}

func ExampleParse() {
	_, err := command.Parse([]byte(`{"command": "make all", "timeuot": "1h"}`))
	fmt.Println(err)
	_, err = command.Parse([]byte(`{"command": "echo it's"}`))
	fmt.Println(err)
	// Output:
	// args of a command job: unknown field "timeuot", want one of command, commands, shell, env, dir, timeout, kill_grace
	// args of a command job: command 1: the quote ' at offset 7 is not closed in "echo it's"; give a list to pass quotes on
}

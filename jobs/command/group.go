package command

import "os"

// group is the process group that a program leads. awaitExit is called once; reap after it has returned.
type group struct {
	process *os.Process
	state   *os.ProcessState // where waiting cannot be told from reaping
	err     error
}

// Package command runs programs as jobs of kind "command".
//
// # Promises
//
// A program runs without a shell unless its job says so. What it prints goes byte for byte into the job's log, stdout and
// stderr apart, while it runs. Its exit code, signal and duration are the run's output; a run fails unless every program of
// it exits with 0, and the error quotes the last lines of stderr.
//
// A job leaves nothing behind. Its program leads a process group of its own, and when the run's context ends (timeout,
// cancel, hard stop), the whole group gets SIGTERM, after KillGrace SIGKILL, and only when all of it has gone does the run
// end. The same happens to what is still running in the group when the program itself has exited; first it has WaitDelay to
// close the output. A process that leaves the group (setsid) escapes, and is left alone; the run does not wait for it.
//
// # How it works
//
// Two pipes, read by a goroutine each, which wait while the log cannot keep up, so that a program that prints a lot is slowed
// down rather than remembered. The program's exit is seen before it is reaped (Linux), so that the number of its group cannot
// be given to somebody else while the rest of the group is being ended.
//
// # Failure
//
// When the executor is killed, the kernel kills the program (Linux, parent death signal), but not the program's own children,
// nor a set-user-ID program; those run on until their next write to the closed pipe ends them. The signal belongs to the
// thread that started the program, so that thread is kept until the program ends. On other systems a program outlives a
// killed executor in the same way.
//
// A container whose first process reaps nothing keeps ended grandchildren as zombies; they are taken for gone (Linux).
//
// On Windows there are no groups: ending a run kills the program only.
package command

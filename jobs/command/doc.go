// Package command runs programs as jobs of kind "command", and for workers of other kinds (Runner).
//
// # Promises
//
// A program runs without a shell unless its job says so. What it prints goes byte for byte into the job's log, stdout and
// stderr apart, while it runs. Its exit code, signal and duration are the run's output; a run fails unless every program of
// it exits with 0, and the error quotes the last lines of stderr.
//
// A job leaves nothing behind. When the run's context ends (timeout, cancel, hard stop), the program and all that descends from it
// get SIGTERM, after KillGrace SIGKILL, and only when all of it has gone does the run end. The same happens to what is still
// running when the program itself has exited; first it has WaitDelay to close the output. On Linux that holds for daemons too:
// leaving the process group, the session, the parent and the environment is no escape. A run whose context has ended before its
// program starts starts none.
//
// No process that is not the program's is ever signalled or reaped.
//
// # How it works
//
// Two pipes, read by a goroutine each, which wait while the log cannot keep up, so that a program that prints a lot is slowed
// down rather than remembered. The program is reaped last (Linux), so that the number of its group cannot be given to somebody else
// while the rest of the group is being ended.
//
// On Linux this process becomes the one that orphans among its descendants go to (a child subreaper). A look at all of /proc, shared
// by the runs that end at the time, finds what belongs to a program: its group, the children of what is known to belong to it, and
// orphans that carry its mark. The mark is the variable PELTON_MARK; a second one, for what was given a new environment and for
// zombies, is a number far out of reach in the soft limit RLIMIT_RTTIME. The program is born with it: this process has the
// limit itself for the moment of the start, and starts its programs one by one. What other code starts in that moment is told apart
// by a flag that children inherit from the thread that forks, not from the process (birth_linux.go). Signals outside the group
// go by pidfd, to a process that is compared after the pidfd was opened. Ended orphans are reaped one by one by their number, at
// least once a second, never by waiting for any child: others in this process may wait for theirs. A process that forks as it is
// killed is met at the next look; looks go on until two in a row find nothing.
//
// PELTON_MARK names the worker's process by number, start and namespace of numbers. So a worker that starts can tell what
// belongs to a worker that is no more (EndLeftovers), from what belongs to one that lives beside it. It ends what is of its own
// Realm and user.
//
// # Failure
//
// When the executor is killed, the kernel kills the program (Linux, parent death signal), but not the program's own children,
// nor a set-user-ID program; those run on until a worker of the same realm starts on the host, or until they write to the
// closed pipe. The signal belongs to the thread that started the program, so that thread is kept until the program ends.
//
// # What is not possible
//
// A process that was not started by a descendant is not found: what a program asks systemd, cron, at, docker or another machine to
// start. Nor is one that sheds parent, group and environment and resets that limit too; nor, where the kernel does not show the
// flag (gVisor), one that sheds the first three in its first instant: there the limit is set just after the start.
//
// What runs as another user (sudo) cannot be signalled unless the worker is root. In the program's group it is waited for; outside it
// is left alone, and the log says so. What a killed worker leaves is not found once it has lost both its environment and its parents.
//
// Orphans of programs that other code of this process starts come to this process too, and are zombies from their end to its own.
//
// On other systems there is only the process group: what leaves it escapes, and a killed executor leaves its programs running. On
// Windows there are no groups: ending a run kills the program only.
package command

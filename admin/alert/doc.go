// Package alert watches the database by rules, and tells people when something is bad, and when it no longer is.
//
// # What it promises
//
// What becomes bad, by a rule of the file that is in force, is told once to each channel of the rule, told again after the rule's reminder,
// and its end is told to those who know of it. A change is neither lost nor told twice, whatever dies: the change of state and the
// notices of it, which are jobs, are one transaction. A job may still run twice, as all jobs may; its notice then has the same id.
//
// # How it works
//
// Any number of processes have an [Evaluator]. Every few seconds each tries to lock the one row of alert_turn; who gets it, and finds that
// nobody has evaluated just now, evaluates all rules. None is a leader: the lock ends with the transaction, also when its process
// dies, and the database ends a transaction whose process stands still after ten seconds.
//
// A rule's reading is one statement, bounded in time and in what it reads, that names the subjects (queues, schedules, ...) that
// are not good. decide, a pure function, makes of these, of the rows of alert_state and of the time what the states and
// notices are: for how long it must be bad (for), what is not good enough to have recovered (until, recover_after), reminders, mutes, and that what
// happens at about the same time comes in one notice (group).
//
// The rules in force are in the database, so that processes with different files, or none, do not contradict each other: the file
// of the process that started last counts. Secrets are not: a notice says which channel it is for, and a [Worker] has the file that says how
// that is reached. Notices go to a queue of their own, so that a queue that is sick does not keep them.
//
// # Failure
//
// A rule that cannot be read, or not in time, says so in the list, and its states stay as they are. If an evaluation as a whole
// fails it is done again. A channel that does not answer is asked seven times within 40 minutes; then the notice is a dead letter. A notice that is sent
// late says so. While the database is down nothing is evaluated or sent: let something else watch that it is up.
package alert

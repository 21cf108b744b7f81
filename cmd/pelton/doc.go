// Command pelton runs and operates the queue: a development server, workers, the scheduler, and what a person or a script
// does to jobs, queues, dead letters and partitions.
//
// This room only wires: flags, environment, signals and printing. What a command does is in the rooms below.
//
// # Which database
//
// --database-url, else DATABASE_URL, else the database of the `pelton dev` that runs on this machine for this user (its
// address is in dev.json in the data directory; -v says which was taken). Migrations may use an address of their own,
// --migrate-database-url or PELTON_MIGRATE_DATABASE_URL, where the other one leads to a pooler in transaction mode.
//
// # Output
//
// Answers go to stdout: tables and sentences for people, or with --json one JSON document, or one a line for lists. Field names
// and states are the same everywhere and stay; times are RFC 3339 in UTC. Everything else goes to stderr, with --json also
// the error, as {"error":..., "exit_code":...}.
//
// # Exit codes
//
//	0    done; a server that was told to stop: stopped in order
//	1    failed
//	2    used wrongly: flags, arguments, input
//	3    not found: no such job, dead letter, run, ...
//	4    refused: the thing is in a state that does not allow it
//	5    the database cannot be reached
//	6    the schema is missing, or older or newer than this program
//	130  interrupted
//
// # Signals
//
// dev, worker and server stop softly at the first SIGINT, SIGTERM or SIGHUP: nothing new is begun, what has not begun is handed back
// at once and uncounted, running jobs may end. After --shutdown-timeout, or at the second signal, the contexts of running
// jobs are cancelled, and those that then fail are handed back uncounted.
package main

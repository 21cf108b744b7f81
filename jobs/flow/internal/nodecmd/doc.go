// Package nodecmd works the nodes of flows that run programs: command, javaprocess, and types that configuration maps to commands.
//
// # Promises
//
// A program finds what it finds in Azkaban: its project's files, JOB_NAME, the node's properties in the file JOB_PROP_FILE, and an
// empty file JOB_OUTPUT_PROP_FILE. Commands run in turn without a shell; the first that does not exit with 0 fails the node. When all
// have, the JSON object in the outputs file becomes the node's outputs, every value but null a text. A file that holds something else fails
// the node, and the log says why: silence would let its children run with the wrong parameters.
//
// The run's output is {"outputs": {...}, "exit_code": ...}, beside what a command job records. Nothing is left behind: no process
// (package command), and not the temporary directory with the two files.
//
// # How it works
//
// The engine has resolved everything before it enqueues the job: parameters, the commands' text, the directory. This package only
// lays out and runs. The files of a project's version come from Files, which keeps a directory per version.
//
// # Failure
//
// A worker that is killed leaves its temporary directories; the next one removes them before its first node (not on Windows).
package nodecmd

// Package flow1 reads projects in Azkaban's Flow 1.0: NAME.job and .properties files.
//
// The .properties files of a directory form a chain in the order of their names, each beating the one before; a directory goes
// on with the chain of the one above it. A job has its own keys and, apart from them, those of its directory's chain. Each job
// that no other depends on is the end of a flow with its name, and so is each with root.node=true.
//
// Files are UTF-8, and ${...} stays as it is: parameters are resolved when a job starts.
package flow1

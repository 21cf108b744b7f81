// Package flow2 reads projects in Azkaban's Flow 2.0: one .project file and .flow files, in YAML.
//
// It walks the YAML library's nodes rather than decoding them into structs, for the line of everything that is wrong, and for
// the text of a value as it was written (1.10 stays 1.10). Keys that nobody knows are faults. Aliases and merge keys work, but a
// file may not grow by them beyond a bound. A file that is broken does not keep the others from being read.
//
// Beside Azkaban's keys a node may have queue, priority, timeout, retry and for_each; a flow max_parallel, on_failure and
// on_cancelled_end.
package flow2

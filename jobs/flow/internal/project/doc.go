// Package project reads an upload: it picks the format, reads the flows, checks them, and reports. Everything that is wrong comes
// out as faults, all of them, and then there is no project. What would run, but otherwise than its author may think, comes out as
// notes: the import report.
package project

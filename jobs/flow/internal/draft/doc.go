// Package draft holds a project as it was written, with names not resolved yet, and turns it into graphs. The readers of both
// formats and the builder make drafts, so one set of rules holds for all three.
//
// Check reports everything that is wrong, not only the first thing, and only a project without faults gets graphs. A set of
// nodes is checked once, however often its flow is embedded; how many nodes that makes is counted before any is made, so that
// flows which embed each other by tens cost nothing.
//
// The package knows no files, no database and no clock.
package draft

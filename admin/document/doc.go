// Package document is what Pelton tells programs: the JSON of the command line's --json and of the API, which is the same, and what both
// must read alike: a job to enqueue, and which run of a job is meant.
//
// Times are UTC, lists are never null, and what is not known is null or left out, as each field says.
package document

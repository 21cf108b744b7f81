// Package state names the states of a job and the outcomes of a run, and decides what follows a run. It is pure: no clock, no
// database.
package state

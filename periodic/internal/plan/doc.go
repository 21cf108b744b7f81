// Package plan decides what becomes of a schedule's ticks: which fire, which are skipped and why, which one waits. It is a pure function of the
// schedule, of where it is, of its newest run and of the time: no I/O, no clock, no randomness.
//
// # What it promises
//
// Every tick up to the state's Decided has had exactly one verdict, and none after it has; so whoever stores the verdicts and the new state in
// one transaction fires every tick exactly once, or has a reason why not. Verdicts come in order of time, but for a tick that waited in vain.
//
// # The cut
//
// A tick that is fired within the grace is on time. When the first due one is older, nobody was there, and the rule for missed ticks gives one
// instant, the cut, for all ticks that are due then, the youngest included: those before it are skipped, the others fire. It stays in the state until all of them are decided, because a single
// decision is bounded, and a cut that moved on between two would skip ticks that the first had let through.
package plan

// Package tick turns what a schedule's expression names into instants, and decides which of them run.
//
// A Source gives the ticks of a schedule in order. It has neither a clock nor state: a tick that it gave is all it needs to go on, so
// the caller may stop anywhere and resume from what it has stored.
//
// # Clock changes
//
// An expression names wall-clock times. A time zone shows each of them once, but for the hours in which its clock is changed:
//
//   - A time that the clock leaves out (a gap) runs at the first moment after the gap (GapNext), or is dropped there (GapSkip). All times of a
//     gap, and one that is named for the moment after it, are a single tick then: 02:00, 02:15, 02:30, 02:45 and 03:00 start one run.
//   - A time that the clock shows more than once (an overlap) runs on the first pass (OverlapFirst), on the last (OverlapLast), or on each
//     (OverlapBoth). The other passes are dropped.
//
// The rule asks only what the zone's clock shows, so it holds alike for an hour, for Lord Howe's half an hour, for a day that a country left
// out, for offsets with seconds, and for a zone that moves without summer time. Dropped ticks are given too, with a Note, so that
// the caller can record each.
//
// Instants are ordered by At, then N. The tick of an instant that may run has N 0; dropped ones count from 1.
//
// # What was missed
//
// Cut says from where on ticks that are due fire, under a schedule's Missed policy.
package tick

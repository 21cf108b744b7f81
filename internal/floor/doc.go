// Package floor keeps low-water marks of tables whose rows are inserted, read from the head and deleted: the line (by seq),
// the scheduled jobs and the due schedules (by wake time), the reports of flows (by id). A read that starts at the mark never visits the dead index entries below it, so a
// transaction that pins the xmin horizon costs nothing.
//
// # What it promises
//
// No committed row lies below a mark for longer than it takes to read the newest row of the table floor after its writer ended.
//
// # How it works
//
// A mark may pass a position only when no open transaction can still commit a row at or below it. The [Marker] notes the last
// position S that was drawn, and then, in a later statement, who holds ROW EXCLUSIVE on the table. Positions are drawn under
// that lock, so whoever can still commit a row up to S is among the holders. When those have ended, S is settled, and a row is
// appended to floor. A [Tracker] reads the newest row and takes, per key (line and priority), the least position that a plain
// read finds between its old mark and S; S + 1 if there is none. Never a read with SKIP LOCKED, nor the position just
// claimed: an open claim puts the rest of a ticket back under its old seq, and a plain read sees exactly one of the two versions.
//
// A writer that stays open is passed after a few seconds. The published row names it and the position to look from; any marker
// goes on watching it, and when it has ended publishes that position, to which trackers lower their marks. A prepared
// transaction goes on under another virtual id, so whenever a watched writer vanishes, the prepared transactions that
// may be its continuation are watched in its place. A subtransaction is its top transaction's virtual id; rolling one back
// may give up the lock, and then the rows are gone as well.
//
// Several markers need no leader. Rows of floor form a chain with a unique key: of two markers that decided on the same newest row
// one publishes and the other starts anew. A marker stands by while somebody else's rows are fresh.
//
// # Failure
//
// An error forgets the note. A note counts only on the server instance it was made on (pg_postmaster_start_time), so
// it does not matter which backend a pooler lends for each look. A sequence that is behind what was published (a failover
// to an older replica), or a clock that stepped back, resets the marks; so does, for a tracker, another instance or a broken chain.
// Under it all is a net: [Tracker.CheckBelow] looks below the marks, lowers them to what it finds, and counts what no
// passed writer explains. That count must be 0.
package floor

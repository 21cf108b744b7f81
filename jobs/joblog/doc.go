// Package joblog stores what jobs print, in chunks of bytes, and reads it back.
//
// # Promises
//
// Bytes are exact: NUL, invalid UTF-8 and characters split over two writes come back as they were written. Each stream of a
// run (o: stdout, e: stderr, l: log lines as JSON, p: progress as JSON) keeps its order exactly; between the streams of a run
// the order is that of writing, to within one flush for a run that alternates quickly.
//
// What was written is in the database within a second or so, so a killed process loses that much and no more. No line costs
// a statement: the chunks of all jobs of a process go in together, one INSERT per flush.
//
// Of each run the first HeadBytes are kept, and about the last TailBytes. What lies between is deleted while the run goes on.
// A reader is told how many bytes are missing, and where.
//
// # How it works
//
// One [Writer] per process serves all its jobs. [Writer.Run] costs an object of a few words; buffers come with the first
// byte. Writes go to the run's spool, one open chunk per stream; a flusher takes the spools in turn and sends up to
// FlushBytes at once. The run's own order of chunks is its id: a time as all ids are (the database's clock, by which the
// table is partitioned), but never smaller than the run's last one. The writer chooses the ids, so that a batch whose commit
// was not answered can be sent again: what was stored already is left alone.
//
// Positions count bytes per stream, also those that were not kept. So a gap is seen by arithmetic, and needs no marker.
//
// # Failure
//
// A run may have RunBytes unsent, a process MemoryBytes; a job that prints faster waits in its Write. When the database has
// been away for Patience, nothing waits any more: chunks from the middle of the largest spool are dropped, so that the
// beginning and the latest output survive. When the process is killed, what was not flushed is lost. When Postgres itself
// crashes, the last flushes may be lost too, because they commit asynchronously.
//
// A run has one writer and one [Run]: two for the same run would use the same ids and hide each other's chunks.
package joblog

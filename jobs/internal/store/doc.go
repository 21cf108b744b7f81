// Package store holds the SQL of the queue and nothing else: every statement is a file under sql/, every method runs one step
// of a job's way through the tables. It decides nothing; what a result means is decided in jobs/internal/state.
//
// Transactions of the store's own run in READ COMMITTED with their own lock and statement timeouts, whatever the session's
// defaults are. Methods that take a DB run in the caller's transaction.
package store

// Package api is the JSON API under /api/v1: what the command line does with jobs, queues, dead letters and the rest, for programs.
//
// # What it promises
//
// The Go types are the contract: the OpenAPI 3.1 document at /openapi.json is made of them, and what it does not know (a parameter, a
// field) is refused, with what may have been meant. Names and values are those of the command line's --json (package document).
//
// Every error is a problem by RFC 9457, also those of paths that do not exist: a type, urn:pelton:..., that programs may branch on, and
// a detail for people that says what was wrong, where, and what to do. docs/api.md lists the types.
//
// Lists come in pages. A page has at most so many items as limit says, and a cursor with which the next begins; whoever follows the
// cursors sees everything that was there all the time exactly once.
//
// A request that enqueues or starts something may carry an Idempotency-Key. Its answer is stored in the transaction of what it did, so
// that a second request with the same key does nothing and gets the same answer, also one that comes at the same time.
//
// # How it works
//
// An operation is one line of add: its id, its path, the role it needs, and a handler from input struct to output struct. huma makes the
// document of them, and checks requests against it. Before that stand: the deadline, the role, and unknown parameters. Reads want a
// viewer, changes an operator, what cannot be undone or decides what runs from then on an admin; things that belong to a flow's project are checked by their handlers, which
// know the project (NoRole).
//
// Errors of other packages become problems in one table (conditions). What is not in it is a fault of the server's: it is logged, and
// the client is told no more than that.
//
// # Failure
//
// Whatever is done is done by the clients' own transactions. If the database is away, requests get 503. A stream whose database goes away
// is cut off, so that a download that ends without an error is whole. Answers under keys are kept for 24 hours, and then deleted by the
// keeper of partitions (schema), a thousand in a transaction.
package api

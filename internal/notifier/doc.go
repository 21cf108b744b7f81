// Package notifier listens for hints on one channel, on a connection of its own beside the pool.
//
// # What it promises
//
// Nothing: hints are hints, and whoever gets them polls as well. A hint sent while it was connected is delivered once, in order,
// unless the connection breaks. After every (re)connection it says so, and since something may have been missed, whoever sleeps
// should look once.
//
// # How it works
//
// The connection only ever runs LISTEN and an empty ping: it is in no transaction and holds no snapshot. A connection on which
// nothing has arrived for a while is pinged, so that one whose other end is gone is noticed. Through a pooler in
// transaction mode LISTEN hears nothing; use no notifier there.
//
// # On failure
//
// It reconnects, with a pause that doubles from 100 ms to 10 s, give or take a tenth. The failure is logged once, and so is the
// recovery.
package notifier

// Package store runs the statements of schedules. The tables are in schema/migrations; each statement's file says what it locks.
//
// Whatever happens to a schedule happens under the lock of its row of schedule_due, and in READ COMMITTED, whatever the session's default
// is: the statement that reads what a decision rests on comes after the one that locks, and so sees all that was committed before.
package store

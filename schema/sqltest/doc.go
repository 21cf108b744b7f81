// Package sqltest holds the tests of what people use by SQL alone: enqueueing from SQL, the views, and the questions of
// docs/sql.md, each run against a real Postgres that was filled by SQL, without a client or an executor.
package sqltest

// Package pgtest gives tests a real PostgreSQL.
//
// One private server per test process starts when the first test asks for a database and is stopped by [Main]. Each
// test gets a database of its own, because notifications, advisory locks and committed rows are seen in the whole
// database. A package uses it so:
//
//	func TestMain(m *testing.M) { pgtest.Main(m, pgtest.CheckLeaks()) }
//
//	func TestSomething(t *testing.T) {
//		t.Parallel()
//		dsn := pgtest.FromTemplate(t, "migrated", migrate) // migrate runs once per process
//		pool := pgtest.Pool(t, dsn)
//		...
//	}
//
// The server is fast and forgetful (fsync is off), and does nothing by itself (autovacuum is off, but for scenarios of full size). A test that kills or restarts a server takes one of its own from
// [NewCluster], and a copy that follows it from [NewStandby]. [Proxy] stands between a client and the server and breaks the connection in the middle of things,
// [Pooler] lends connections to several clients.
//
// # Environment
//
//	PELTON_TEST_PG_BIN      directory of initdb and postgres to use; else the first that postgres.Find finds, else one
//	                        that is downloaded once into the user's cache directory
//	PELTON_TEST_PG_OPTIONS  more server settings: "name=value,name='value, with comma'"
//	PELTON_TEST_PGBOUNCER   pgbouncer to use; else the first that is found, else tests of poolers are skipped
//	PELTON_SCENARIOS        "full": see [FullSize]
//
// # Failure
//
// A machine without PostgreSQL, and without a network to fetch it from, fails the tests; it does not skip them. A test process that is killed takes its server
// along (Linux), and the next one removes the directory it left.
package pgtest

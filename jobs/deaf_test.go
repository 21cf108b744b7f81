package jobs_test

import (
	"testing"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/schema/schematest"
)

// A running job is cancelled while the listening connection is cut and cannot come back: the heartbeat brings it.
func TestCancelWhileTheListenerIsCut(t *testing.T) {
	t.Parallel()
	dsn := schematest.DSN(t)
	proxy, direct := pgtest.NewProxy(t, dsn), pgtest.Pool(t, dsn)
	b := newBlocking()
	client := start(t, pgtest.Pool(t, proxy.DSN()), config(b.work))
	id := insert(t, client, 1, nil)
	<-b.began
	const listening = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN %'`
	pgtest.Eventually(t, patience, func() bool { return one[int](t, direct, listening) == 1 }, "the client to listen")
	for range 1000 { // each time it tries again
		proxy.CutBeforeSend(pgtest.SQL("LISTEN "))
	}
	exec(t, direct, `SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
		WHERE datname = current_database() AND query LIKE 'LISTEN %'`)
	if n := one[int](t, direct, listening); n != 0 {
		t.Fatalf("%d connections listen: the test shows nothing", n)
	}
	if _, err := newClient(t, direct, nil).JobCancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	waitOutcomes(t, direct, id, "cancelled")
	if n := one[int](t, direct, listening); n != 0 {
		t.Errorf("%d connections listen: the test shows nothing", n)
	}
	schematest.Audit(t, direct)
}

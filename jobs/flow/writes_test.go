package flow_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/internal/postgres"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/jobs/flow/flowtest"
	"github.com/peltonq/pelton/schema"
)

// What a run writes for a node that ends does not grow with the size of its flow: rows and WAL of a chain of 30 jobs within a flow of
// few nodes and of very many.
func TestWritesPerNodeDoNotGrow(t *testing.T) {
	t.Parallel()
	// Of its own: WAL is the whole cluster's, and nothing but the run is to write much.
	cluster := pgtest.NewCluster(t, postgres.Config{NoSync: true, Settings: map[string]string{"full_page_writes": "off"}})
	must(t, schema.Up(t.Context(), cluster.DSN("postgres"), schema.DefaultName))
	h := &house{t: t, pool: pgtest.Pool(t, cluster.DSN("postgres"))}
	keeper, err := schema.NewKeeper(h.pool, schema.DefaultName, schema.KeeperConfig{})
	must(t, err)
	_, err = keeper.Maintain(t.Context()) // or the client makes its partitions meanwhile
	must(t, err)
	_, err = h.pool.Exec(t.Context(), countChanges)
	must(t, err)
	gates := &gate{}
	h.jobs, h.flows = h.client(func(ctx context.Context, job flowtest.Job) (map[string]string, error) {
		return nil, gates.wait(ctx, fmt.Sprint(job.Node.Run, job.Node.Path))
	})
	var small, large strings.Builder
	for _, text := range []*strings.Builder{&small, &large} {
		text.WriteString("nodes:\n")
		for i := range 30 {
			after := ""
			if i > 0 {
				after = fmt.Sprintf(", dependsOn: [c%d]", i-1)
			}
			config := "{fail: false}"
			if i == 6 || i == 26 {
				config = "{}" // these two wait at their gates
			}
			fmt.Fprintf(text, "  - {name: c%d, type: test, config: %s%s}\n", i, config, after)
		}
	}
	for i := range 10_000 { // they wait for the end of the chain, and are passed at once
		fmt.Fprintf(&large, "  - {name: x%d, type: noop, dependsOn: [c29]}\n", i)
	}
	for i := range 70 {
		fmt.Fprintf(&small, "  - {name: x%d, type: noop, dependsOn: [c29]}\n", i)
	}
	h.push(write(t, map[string]string{"p.project": "azkaban-flow-version: 2.0\n", "small.flow": small.String(), "large.flow": large.String()}))
	few, many := h.writesOf(gates, "small"), h.writesOf(gates, "large")
	t.Logf("a node costs %.1f rows and %.0f bytes of WAL in a flow of 100 nodes, %.1f and %.0f in one of 10,030", few.rows, few.wal, many.rows, many.wal)
	if many.rows > few.rows+2 || many.wal > 2*few.wal+2000 {
		t.Error("the cost of a node grows with the flow")
	}
}

// countChanges has every row that is inserted, updated or deleted counted by a sequence.
const countChanges = `
CREATE SEQUENCE pelton.changes;
CREATE FUNCTION pelton.count_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval('pelton.changes'); RETURN NULL; END $$;
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['flow_run', 'flow_node', 'flow_report', 'flow_timer', 'job', 'job_attempt', 'job_ready', 'job_lease'] LOOP
        EXECUTE format('CREATE TRIGGER count_change AFTER INSERT OR UPDATE OR DELETE ON pelton.%I FOR EACH ROW EXECUTE FUNCTION pelton.count_change()', name);
    END LOOP;
END $$`

// writes is what a run has written, or what it writes for a node.
type writes struct{ rows, wal float64 }

// writesOf runs a flow and returns what it writes for a node that ends, from the sixth to the 26th of its chain. What it writes is
// looked at while the chain waits at a gate, so that nothing but heartbeats goes on.
func (h *house) writesOf(gates *gate, name string) writes {
	h.t.Helper()
	run := h.start(name, flow.Options{})
	at := func(node string) (w writes) {
		h.eventually(run, node, "RUNNING")
		err := h.pool.QueryRow(h.t.Context(), `SELECT (SELECT last_value FROM pelton.changes), (pg_current_wal_insert_lsn() - '0/0')::bigint`).
			Scan(&w.rows, &w.wal)
		must(h.t, err)
		gates.open(fmt.Sprint(run, node))
		return w
	}
	first, last := at("c6"), at("c26")
	equal(h.t, name, strings.Fields(h.ended(run))[0], "SUCCEEDED:")
	const nodes = 20
	return writes{(last.rows - first.rows) / nodes, (last.wal - first.wal) / nodes}
}

package periodic

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/schema/schematest"
)

// Schedules are stored, fired and operated on in each way of asking that poolers call for.
func TestVerbsInQueryModes(t *testing.T) {
	t.Parallel()
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			r := newRigOn(t, schematest.Pool(t, func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = mode }))
			must := func(what string, err error) {
				t.Helper()
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
			}
			s := hourly("x")
			s.Overlap, s.Description = OverlapQueue, "it's a \"description\"\nwith two lines"
			r.put(s)
			r.back("x", 3*time.Hour)
			r.fireAll()
			r.expect("x", map[string]int{"fired": 1, "skipped missed": 2})
			_, err := r.firer.step(t.Context())
			must("look", err)
			_, err = r.Trigger(t.Context(), "x")
			must("trigger", err)
			_, err = r.Pause(t.Context(), "x")
			must("pause", err)
			_, err = r.Resume(t.Context(), "x")
			must("resume", err)
			b := r.backfilled("x", BackfillParams{From: r.yesterday(0), To: r.yesterday(5), Parallel: 4})
			r.step()
			_, err = r.BackfillCancel(t.Context(), b.ID)
			must("cancel", err)
			if p := r.progress(b.ID); p.Started != 4 || p.Live != 4 {
				t.Errorf("backfill: %+v", p)
			}
			_, _, err = r.store.BackfillDue(t.Context(), nil)
			must("look for backfills", err)
			must("put off", r.store.PutOffBackfill(t.Context(), b.ID, time.Second))
			owner, paused := "", false
			entries, err := r.List(t.Context(), ListParams{Prefix: "x", Owner: &owner, Kind: "report", Paused: &paused, Limit: 2})
			if err != nil || len(entries) != 1 || entries[0].Description != s.Description || entries[0].LastTick == nil {
				t.Errorf("list: %+v, %v", entries, err)
			}
			page, err := r.Ticks(t.Context(), "x", TicksParams{Limit: 1, Since: r.yesterday(0), Until: r.now(), Outcome: TickFired, Source: SourceBackfill, Backfill: b.ID})
			if err != nil || len(page.Ticks) != 1 {
				t.Fatalf("ticks: %+v, %v", page, err)
			}
			if page, err = r.Ticks(t.Context(), "x", TicksParams{After: page.Cursor}); err != nil || len(page.Ticks) != 3 {
				t.Errorf("further ticks: %+v, %v", page, err)
			}
			r.started("a", declared(hourly("y")))
			r.started("a")
			must("rights", r.checkRights(t.Context()))
			_, err = r.Delete(t.Context(), "x")
			must("delete", err)
		})
	}
}

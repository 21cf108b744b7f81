package admin_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/peltonq/pelton/admin"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/schema"
	"github.com/peltonq/pelton/schema/schematest"
)

// What is observed of a run costs well under a microsecond; of a job that a schedule has enqueued, some.
func BenchmarkFinished(b *testing.B) {
	pool, err := pgxpool.New(b.Context(), "postgres://127.0.0.1:1/none") // never connected
	if err != nil {
		b.Fatal(err)
	}
	defer pool.Close()
	traced := `{"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}`
	for _, of := range []struct {
		name     string
		kinds    int
		metadata string
	}{
		{"kinds=1", 1, ""},
		{"kinds=10", 10, ""},
		{"metadata", 10, traced},
		{"tick", 10, `{"pelton:schedule": {"name": "nightly", "tick": "2026-03-01T02:30:00Z"}}`},
	} {
		b.Run(of.name, func(b *testing.B) {
			m, err := admin.NewMetrics(pool, admin.MetricsConfig{Logger: quiet()})
			if err != nil {
				b.Fatal(err)
			}
			runs := make([]jobs.RunStats, 500)
			for i := range runs {
				runs[i] = jobs.RunStats{
					Queue: "default", Kind: fmt.Sprintf("kind_%d", i%of.kinds), Outcome: "completed", Wait: time.Duration(i) * time.Millisecond,
					Run: time.Duration(i) * time.Microsecond, Number: 1, Started: time.Now(), Metadata: []byte(of.metadata),
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				m.Finished(runs, time.Millisecond)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(runs)), "ns/run")
		})
	}
}

// A scrape that reads everything anew, on a database with many partitions.
func BenchmarkScrape(b *testing.B) {
	for _, ahead := range []int{30, 400} {
		b.Run(fmt.Sprintf("partitions=%d", 4*ahead), func(b *testing.B) {
			pool := schematest.Pool(b)
			keeper, err := schema.NewKeeper(pool, schema.DefaultName, schema.KeeperConfig{Ahead: ahead, Low: ahead})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := keeper.Maintain(b.Context()); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				m, err := admin.NewMetrics(pool, admin.MetricsConfig{LostEvery: -1, Logger: quiet()}) // nothing is kept
				if err != nil {
					b.Fatal(err)
				}
				if _, err := m.Registry().Gather(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

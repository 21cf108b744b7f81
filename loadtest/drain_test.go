package loadtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/internal/pgtest"
)

// pgBin is where the test server's programs are, as in internal/pgtest.
func pgBin() string { return os.Getenv("PELTON_TEST_PG_BIN") }

// decodeReport reads a report's JSON into a test's own type.
func decodeReport(t *testing.T, report, into any) {
	t.Helper()
	text, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("the report is other JSON: %v\n%s", err, text)
	}
}

// TestDrain is a small run of all engines: the shape of the report, not its figures.
func TestDrain(t *testing.T) {
	t.Parallel()
	const n = 2000
	var out bytes.Buffer
	report, err := Drain(t.Context(), DrainConfig{Jobs: n, Rounds: 1, PGBin: pgBin(), noSync: true}, &out)
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	var printed struct {
		Scenario string
		Pin      *bool
		Engines  map[string]map[string]any
		Ratio    map[string]float64
	}
	decodeReport(t, report, &printed)
	if printed.Scenario != "drain" || printed.Pin == nil || *printed.Pin {
		t.Errorf("scenario %q, pin %v", printed.Scenario, printed.Pin)
	}
	for _, e := range engines {
		for _, figure := range []string{"insert_per_s", "work_per_s", "wal_bytes_per_job"} {
			if value, ok := printed.Engines[e.name()][figure].(float64); !ok || value <= 0 {
				t.Errorf("%s of %s is %v", figure, e.name(), printed.Engines[e.name()][figure])
			}
		}
		of := report.Engines[e.name()]
		if of.Workers != 1000 && of.Workers != 2000 {
			t.Errorf("%s: chose %d workers", e.name(), of.Workers)
		}
		if of.Min.WorkPerSecond != of.Max.WorkPerSecond {
			t.Errorf("%s: one round has a range: %+v", e.name(), of)
		}
	}
	for _, figure := range []string{"insert", "work", "wal"} {
		if len(engines) > 1 && printed.Ratio[figure] <= 0 {
			t.Errorf("ratio %s is %v", figure, printed.Ratio[figure])
		}
	}
	for _, text := range []string{"insert/s", "work/s", "WAL bytes/job", EngineRiver} {
		if !strings.Contains(out.String(), text) {
			t.Errorf("the table does not tell %q", text)
		}
	}
}

// TestDrainPinned holds both transactions open; each engine must get past them.
func TestDrainPinned(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	config := DrainConfig{Jobs: 500, Rounds: 1, Workers: 100, Batch: 100, Pin: true, PinWriter: true, PGBin: pgBin(), noSync: true}
	report, err := Drain(t.Context(), config, &out)
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if !report.Pin || !report.PinWriter || report.Jobs != 500 || len(report.Engines) != len(engines) {
		t.Errorf("report: %+v", report)
	}
}

func TestDrainRefuses(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]DrainConfig{
		"jobs":    {Jobs: -1},
		"rounds":  {Rounds: 100_000},
		"batch":   {Batch: 1_000_000},
		"workers": {Workers: 20_000},
		"engine":  {Engines: []string{"sidekiq"}},
		"twice":   {Engines: []string{"river", "river"}},
	} {
		if _, err := Drain(t.Context(), config, nil); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestWrongCountIsAnError plants what must not be reported as a figure: jobs that are lost, repeated or left over.
func TestWrongCountIsAnError(t *testing.T) {
	t.Parallel()
	good := books{Jobs: 10, Completed: 10, Runs: 10}
	for _, e := range engines {
		if err := good.check(e, 10); err != nil {
			t.Errorf("good books: %v", err)
		}
		for name, bad := range map[string]books{
			"lost":     {Jobs: 10, Completed: 9, Runs: 9},
			"too many": {Jobs: 11, Completed: 11, Runs: 11},
			"twice":    {Jobs: 10, Completed: 10, Runs: 11},
			"waiting":  {Jobs: 10, Completed: 10, Runs: 10, Waiting: 1},
			"repeated": {Jobs: 10, Completed: 10, Runs: 10, repeated: 1},
		} {
			var wrong *CountError
			if err := bad.check(e, 10); !errors.As(err, &wrong) || wrong.Engine != e.name() {
				t.Errorf("%s: error %v", name, err)
			}
		}
	}
}

// TestBooksReadTheTables checks on real tables that unfinished jobs are seen.
func TestBooksReadTheTables(t *testing.T) {
	t.Parallel()
	for _, e := range engines {
		t.Run(e.name(), func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.FromTemplate(t, e.name(), e.prepare)
			c, err := e.open(pgtest.Pool(t, dsn), clientOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for i := range 3 {
				if err := c.insert(t.Context(), noopArgs{Number: i}); err != nil {
					t.Fatal(err)
				}
			}
			watch, err := pgx.Connect(t.Context(), dsn)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = watch.Close(t.Context()) }()
			got, err := readBooks(t.Context(), e, watch)
			if err != nil {
				t.Fatal(err)
			}
			if want := (books{Jobs: 3, Waiting: 3}); got != want {
				t.Errorf("books %+v, want %+v", got, want)
			}
		})
	}
}

func TestTally(t *testing.T) {
	t.Parallel()
	tally := newTally(2)
	tally.ran(1)
	tally.ran(1)
	tally.ran(-1)
	select {
	case <-tally.all:
		t.Fatal("all have run, but one has not")
	default:
	}
	tally.ran(0)
	<-tally.all
	if got := tally.repeated(); got != 2 {
		t.Errorf("%d repeated, want one repeated and one stray", got)
	}
}

func TestSummaries(t *testing.T) {
	t.Parallel()
	rounds := func(values ...float64) []Figures {
		var all []Figures
		for _, v := range values {
			all = append(all, Figures{InsertPerSecond: v, WorkPerSecond: 2 * v, WALBytesPerJob: 3 * v, ClientCPUWork: v, ServerCPUWork: v})
		}
		return all
	}
	got := summarize(rounds(3, 1, 10))
	if got.InsertPerSecond != 3 || got.Min.WorkPerSecond != 2 || got.Max.WALBytesPerJob != 30 {
		t.Errorf("summary %+v", got)
	}
	// Ratios are taken within rounds: 10/1, 20/10 and 30/100, of which the median is 2; the medians' ratio is 2, too, but
	// not in the other order.
	ratio := compare(rounds(10, 20, 30), rounds(1, 10, 100))
	if ratio.Insert != 2 || ratio.Work != 2 || ratio.WAL != 2 {
		t.Errorf("ratio %+v", ratio)
	}
	if ratio := compare(rounds(30, 10, 20), rounds(1, 10, 100)); ratio.Insert != 1 {
		t.Errorf("ratio %+v, want that of the middle round", ratio)
	}
	if m := median([]float64{4, 1, 3, 2}); m != 2.5 {
		t.Errorf("median %v", m)
	}
}

func TestChooseEngines(t *testing.T) {
	t.Parallel()
	all, err := chooseEngines(nil)
	if err != nil || !slices.Equal(all, engines) {
		t.Errorf("engines %v, %v", all, err)
	}
}

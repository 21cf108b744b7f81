package loadtest

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/jobs"
	"github.com/peltonq/pelton/schema/schematest"
)

// kind gives a kind to the args types of this test.
type kind struct{}

func (kind) Kind() string { return "unique_test" }

// Person and Address are fields of the args types.
type Person struct {
	Name    string   `json:"name"`
	ID      int      `json:"id" river:"unique"`
	Friends []Person `json:"friends,omitempty"`
}

type Address struct {
	Street string `json:"street"`
	City   string `json:"city"`
}

type Embedded struct {
	Tenant string `json:"tenant" river:"unique"`
	Note   string `json:"note"`
}

type (
	plainArgs struct {
		kind
		B string         `json:"b"`
		A int            `json:"a"`
		M map[string]int `json:"m,omitempty"`
		X string         `json:"-"`
	}
	taggedArgs struct {
		kind
		Trace string  `json:"trace"`
		Z     float64 `json:"z" river:"unique"`
		Name  string  `json:"name" river:"unique"`
	}
	omittedArgs struct {
		kind
		A string `json:"a,omitempty" river:"unique"`
		B *int   `json:"b,omitempty" river:"unique"`
		C *int   `json:"c" river:"unique"`
		D string `json:"d"`
	}
	nestedArgs struct {
		kind
		Who   *Person `json:"who"`
		Where Address `json:"where" river:"unique"`
		Extra string
	}
	embeddedArgs struct {
		kind
		Embedded
		*Address

		Last string `json:"last" river:"unique"`
	}
	taggedEmbeddedArgs struct {
		kind
		Address `json:"home" river:"unique"`
	}
	untaggedNamesArgs struct {
		kind
		First  string `river:"unique"`
		Second string `json:",omitempty" river:"unique"`
		Other  string
	}
	oddKeysArgs struct {
		kind
		Dot   string `json:"a.b" river:"unique"`
		Star  string `json:"a*" river:"unique"`
		At    string `json:"@this" river:"unique"`
		Colon string `json:":x" river:"unique"`
		Hash  string `json:"#" river:"unique"`
		Uml   string `json:"größe" river:"unique"`
		Angle string `json:"a<b" river:"unique"`
	}
	timeArgs struct {
		kind
		At  time.Time       `json:"at" river:"unique"`
		Raw json.RawMessage `json:"raw" river:"unique, sequence"`
	}
	recursiveArgs struct {
		kind
		Name string         `json:"name" river:"unique"`
		Next *recursiveArgs `json:"next,omitempty" river:"unique"`
	}
	twiceArgs struct {
		kind
		From Person `json:"from"`
		To   Person `json:"to" river:"unique"`
	}
	ignoredArgs struct {
		kind
		A string `json:"-" river:"unique"`
		B string `json:"b"`
		c string `river:"unique"` //nolint:unused // that it is not exported is the case
	}
	withOptsArgs struct {
		kind
		A string `json:"a"`
	}
	notObjectArgs struct{ kind }
)

func (withOptsArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: "other", UniqueOpts: river.UniqueOpts{ByArgs: true, ByQueue: true}}
}

func (notObjectArgs) MarshalJSON() ([]byte, error) { return []byte(`[1, 2]`), nil }

var one = 1

var uniqueCases = []struct {
	name string
	args river.JobArgs
	opts river.InsertOpts
}{
	{"by kind and state", plainArgs{}, unique(river.UniqueOpts{ByState: []rivertype.JobState{
		rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning, rivertype.JobStateScheduled,
		rivertype.JobStateDiscarded,
	}})},
	{"all args", plainArgs{B: "b", A: 3, M: map[string]int{"z": 1, "a": 2}, X: "x"}, byArgs},
	{"all args, html and unicode", plainArgs{B: "<é&\u2028\x01\">"}, byArgs},
	{"all args, odd keys", oddKeysAll{"a.b": 1, "": 2, "q\"": 3, "é": 4, "<": 5, "\\": 6}, byArgs},
	{"pointer to args", &plainArgs{B: "b"}, byArgs},
	{"tagged", taggedArgs{Trace: "t", Z: 1e21, Name: "n"}, byArgs},
	{"tagged, another trace", taggedArgs{Trace: "u", Z: 1e21, Name: "n"}, byArgs},
	{"pointer to tagged", &taggedArgs{Z: 0.1, Name: "<n>"}, byArgs},
	{"omitted", omittedArgs{D: "d"}, byArgs},
	{"not omitted", omittedArgs{A: "a", B: &one, C: &one}, byArgs},
	{"nested", nestedArgs{Who: &Person{Name: "n", ID: 7}, Where: Address{"s", "c"}}, byArgs},
	{"nested, nil", nestedArgs{Where: Address{"s", "c"}}, byArgs},
	{"embedded", embeddedArgs{Embedded: Embedded{Tenant: "t", Note: "n"}, Address: &Address{"s", "c"}, Last: "l"}, byArgs},
	{"embedded, nil", embeddedArgs{Last: "l"}, byArgs},
	{"embedded with a name", taggedEmbeddedArgs{Address: Address{"s", "c"}}, byArgs},
	{"keys by field names", untaggedNamesArgs{First: "f", Second: "s", Other: "o"}, byArgs},
	{"tagged odd keys", oddKeysArgs{Dot: "1", Star: "2", At: "3", Colon: "4", Hash: "5", Uml: "6", Angle: "7"}, byArgs},
	{"time and raw", timeArgs{At: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Raw: json.RawMessage(`{"b": 1, "a": [ ]}`)}, byArgs},
	{"recursive", recursiveArgs{Name: "1", Next: &recursiveArgs{Name: "2", Next: &recursiveArgs{Name: "3"}}}, byArgs},
	{"recursive through a slice", nestedArgs{Who: &Person{ID: 1, Friends: []Person{{ID: 2}}}}, byArgs},
	{"one type twice", twiceArgs{From: Person{ID: 1}, To: Person{ID: 2}}, byArgs},
	{"tagged but not encoded", ignoredArgs{A: "a", B: "b"}, byArgs},
	{"options of the args type", withOptsArgs{A: "a"}, river.InsertOpts{}},
	{"options of the call before the type's", withOptsArgs{A: "a"}, unique(river.UniqueOpts{ByQueue: true})},
	{"not an object", notObjectArgs{}, byArgs},
	{"queue", plainArgs{}, river.InsertOpts{Queue: "some_queue", UniqueOpts: river.UniqueOpts{ByQueue: true}}},
	{"default queue", plainArgs{}, unique(river.UniqueOpts{ByQueue: true})},
	{"without kind", plainArgs{B: "b"}, unique(river.UniqueOpts{ByArgs: true, ExcludeKind: true})},
	{"without kind, by queue", plainArgs{}, unique(river.UniqueOpts{ByQueue: true, ExcludeKind: true})},
	{"without anything", plainArgs{}, unique(river.UniqueOpts{ExcludeKind: true})},
	{"period, scheduled", plainArgs{}, scheduled(24 * time.Hour)},
	{"period of no round length, scheduled", plainArgs{}, scheduled(7*time.Hour + time.Second)},
	{"period too short", plainArgs{}, scheduled(time.Millisecond)},
	{"state missing", plainArgs{}, unique(river.UniqueOpts{ByState: []rivertype.JobState{rivertype.JobStateRunning}})},
	{"everything", taggedArgs{Z: 1, Name: "n"}, river.InsertOpts{
		Queue: "q", ScheduledAt: elsewhere,
		UniqueOpts: river.UniqueOpts{
			ByArgs: true, ByPeriod: time.Hour, ByQueue: true, ExcludeKind: true, ByState: rivertype.JobStates(),
		},
	}},
}

// elsewhere is a time with a zone, far enough away that both clients take it as it is.
var elsewhere = time.Date(2039, 12, 31, 23, 30, 0, 0, time.FixedZone("east", 5*3600+1800))

var byArgs = unique(river.UniqueOpts{ByArgs: true})

func unique(opts river.UniqueOpts) river.InsertOpts { return river.InsertOpts{UniqueOpts: opts} }

func scheduled(period time.Duration) river.InsertOpts {
	return river.InsertOpts{ScheduledAt: elsewhere, UniqueOpts: river.UniqueOpts{ByPeriod: period}}
}

// oddKeysAll is an args type without tags.
type oddKeysAll map[string]int

func (oddKeysAll) Kind() string { return "unique_test" }

// TestUniqueKeysAreRivers inserts the same jobs with both engines and compares what stands in the tables. Both may refuse. One
// difference is left out: where the JSON key of a tagged field is a number, River hashes an array instead of an object.
func TestUniqueKeysAreRivers(t *testing.T) {
	t.Parallel()
	dsn := pgtest.FromTemplate(t, "river", riverEngine{}.prepare)
	riverPool, peltonPool := pgtest.Pool(t, dsn), schematest.Pool(t)
	theirs, err := river.NewClient(riverpgxv5.New(riverPool), &river.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ours, err := jobs.NewClient(peltonPool, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range uniqueCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			theirKey, theirStates, theirErr := storedKey(t, riverPool,
				"SELECT unique_key, unique_states::integer FROM river_job WHERE id = $1",
				func(ctx context.Context, tx pgx.Tx) (*rivertype.JobInsertResult, error) {
					return theirs.InsertTx(ctx, tx, c.args, &c.opts)
				})
			ourKey, ourStates, ourErr := storedKey(t, peltonPool,
				"SELECT unique_key, unique_states::integer FROM pelton.job WHERE id = $1",
				func(ctx context.Context, tx pgx.Tx) (*rivertype.JobInsertResult, error) {
					return ours.InsertTx(ctx, tx, c.args, &c.opts)
				})
			if (theirErr == nil) != (ourErr == nil) {
				t.Fatalf("River's error: %v, ours: %v", theirErr, ourErr)
			}
			if ourKey != theirKey || ourStates != theirStates {
				t.Errorf("key %s, states %08b, River has %s, %08b", ourKey, ourStates, theirKey, theirStates)
			}
		})
	}
}

// TestUniqueKeyOfNowIsRivers compares keys by the present time, and tries again when the period ends in between.
func TestUniqueKeyOfNowIsRivers(t *testing.T) {
	t.Parallel()
	dsn := pgtest.FromTemplate(t, "river", riverEngine{}.prepare)
	riverPool, peltonPool := pgtest.Pool(t, dsn), schematest.Pool(t)
	theirs, err := river.NewClient(riverpgxv5.New(riverPool), &river.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ours, err := jobs.NewClient(peltonPool, nil)
	if err != nil {
		t.Fatal(err)
	}
	opts := unique(river.UniqueOpts{ByPeriod: time.Hour})
	var got [2]string
	for range 2 {
		want, _, err := storedKey(t, riverPool, "SELECT unique_key, 0 FROM river_job WHERE id = $1",
			func(ctx context.Context, tx pgx.Tx) (*rivertype.JobInsertResult, error) {
				return theirs.InsertTx(ctx, tx, plainArgs{}, &opts)
			})
		if err != nil {
			t.Fatal(err)
		}
		key, _, err := storedKey(t, peltonPool, "SELECT unique_key, 0 FROM pelton.job WHERE id = $1",
			func(ctx context.Context, tx pgx.Tx) (*rivertype.JobInsertResult, error) {
				return ours.InsertTx(ctx, tx, plainArgs{}, &opts)
			})
		if err != nil {
			t.Fatal(err)
		}
		if got = [2]string{key, want}; key == want {
			return
		}
	}
	t.Errorf("key %s, River has %s", got[0], got[1])
}

// storedKey inserts a job in a transaction, reads what was stored, and rolls back.
func storedKey(t *testing.T, pool *pgxpool.Pool, query string,
	insert func(ctx context.Context, tx pgx.Tx) (*rivertype.JobInsertResult, error),
) (key string, states int, err error) {
	t.Helper()
	ctx := t.Context()
	tx, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := tx.Rollback(ctx); err != nil {
			t.Error(err)
		}
	}()
	result, err := insert(ctx, tx)
	if err != nil {
		return "", 0, err
	}
	var stored []byte
	if err := tx.QueryRow(ctx, query, result.Job.ID).Scan(&stored, &states); err != nil {
		t.Fatal(err)
	}
	if len(stored) == 0 {
		t.Error("no unique key was stored")
	}
	return hex.EncodeToString(stored), states, nil
}

package sqltest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/peltonq/pelton/internal/pgtest"
	"github.com/peltonq/pelton/schema/schematest"
)

// TestUniqueKeyIsRivers checks keys against what River's rules say, spelled out: sha256 over the parts, args with their keys
// sorted and their values as encoding/json writes them, the period's beginning in UTC.
func TestUniqueKeyIsRivers(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	at := time.Date(2031, 5, 6, 17, 18, 19, 123456000, time.UTC)
	period := func(d time.Duration) string { return "&period=" + at.Truncate(d).Format(time.RFC3339) }
	for arguments, content := range map[string]string{
		`'{}', unique_by_args => true`:                                                      `&kind=k&args={}`,
		`'[ ]', unique_by_args => true`:                                                     `&kind=k&args={}`,
		`'{ "b": 1, "a": [1, {"y": 2, "x": 1}] }', unique_by_args => true`:                  `&kind=k&args={"a":[1,{"y":2,"x":1}],"b":1}`,
		`'{"a":1,"a":2}', unique_by_args => true`:                                           `&kind=k&args={"a":1}`,
		`'{"é":1,"z":2,"Z":3,"":4}', unique_by_args => true`:                                `&kind=k&args={"":4,"Z":3,"z":2,"é":1}`,
		`'{"a":"x<y & z"}', unique_by_args => true`:                                         `&kind=k&args={"a":"x\u003cy \u0026 z"}`,
		`'{"a<":1,"b\"<":2}', unique_by_args => true`:                                       `&kind=k&args={"a<":1,"b\"\u003c":2}`,
		`'{"a.b":1,"a":{"b":2}}', unique_fields => '{a.b}'`:                                 `&kind=k&args={"a.b":1}`,
		`'{"b":2,"a":1,"c":3}', unique_fields => '{c,b,d}'`:                                 `&kind=k&args={"b":2,"c":3}`,
		`'{"a":1}', unique_fields => '{x}'`:                                                 `&kind=k&args=`,
		`'{"a":1}', unique_fields => '{}', unique_by_args => true`:                          `&kind=k&args={"a":1}`,
		`'{}', unique_by_queue => true, queue => 'mail'`:                                    `&kind=k&queue=mail`,
		`'{}', unique_states => '{available,pending,running,scheduled}'`:                    `&kind=k`,
		`'{}', unique_states => '{}'`:                                                       `&kind=k`,
		`'{"a":1}', unique_by_args => true, unique_exclude_kind => true`:                    `&args={"a":1}`,
		`'{}', unique_by_period => '15 minutes', run_at => '2031-05-06 19:18:19.123456+02'`: `&kind=k` + period(15*time.Minute),
		`'{}', unique_by_period => '7 days', run_at => '2031-05-06 17:18:19.123456Z'`:       `&kind=k` + period(7*24*time.Hour),
		`'{}', unique_by_period => '1.5 s', run_at => '2031-05-06 17:18:19.123456Z'`:        `&kind=k` + period(1500*time.Millisecond),
		`'{"a":1}', unique_by_period => '11 hours', run_at => '2031-05-06 17:18:19.123456Z', unique_by_args => true,
			unique_by_queue => true`: `&kind=k&args={"a":1}` + period(11*time.Hour) + `&queue=default`,
	} {
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		id := value[int64](t, tx, `SELECT pelton.enqueue('k', `+arguments+`)`)
		key := value[[]byte](t, tx, `SELECT unique_key FROM pelton.job WHERE id = $1`, id)
		if want := sha256.Sum256([]byte(content)); !bytes.Equal(key, want[:]) {
			t.Errorf("enqueue('k', %s) has key %s, want that of %s", arguments, hex.EncodeToString(key), content)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestUniqueOldPeriods(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	for _, at := range []time.Time{
		time.Date(1969, 12, 31, 23, 59, 59, 999999000, time.UTC), time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
	} {
		for _, d := range []time.Duration{time.Second, 7 * time.Second, 36 * time.Hour} {
			key := value[[]byte](t, pool, `SELECT pelton.unique_key('', 'k', '{}', 'q', $1, false, NULL,
				make_interval(secs => $2), false, NULL, false)`, at, d.Seconds())
			if want := sha256.Sum256([]byte("&kind=k&period=" + at.Truncate(d).Format(time.RFC3339))); !bytes.Equal(key, want[:]) {
				t.Errorf("period %v of %v differs from Go's", d, at)
			}
		}
	}
}

func TestUniqueConflicts(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	enqueue := func(arguments string) (id int64, skipped bool) {
		t.Helper()
		row := pool.QueryRow(t.Context(), `SELECT id, skipped FROM pelton.enqueue_result(`+arguments+`)`)
		if err := row.Scan(&id, &skipped); err != nil {
			t.Fatal(err)
		}
		return id, skipped
	}
	first, skipped := enqueue(`'k', '{"a": 1, "b": 2}', unique_by_args => true`)
	if skipped {
		t.Error("the first was skipped")
	}
	if id, skipped := enqueue(`'k', '{"b":2,"a":1}', unique_by_args => true`); id != first || !skipped {
		t.Errorf("the same args gave job %d, skipped %t; want %d, true", id, skipped, first)
	}
	if id := value[int64](t, pool, `SELECT pelton.enqueue('k', '{"b":2,"a":1}', unique_by_args => true)`); id != first {
		t.Errorf("enqueue gave job %d, want the one there, %d", id, first)
	}
	for _, other := range []string{
		`'k', '{"a": 1, "b": 3}', unique_by_args => true`, `'k2', '{"a": 1, "b": 2}', unique_by_args => true`, `'k', '{"a": 1, "b": 2}'`,
	} {
		if id, skipped := enqueue(other); id == first || skipped {
			t.Errorf("enqueue_result(%s) was skipped", other)
		}
	}
	if mask := value[int16](t, pool, `SELECT unique_states FROM pelton.job WHERE id = $1`, first); mask != 0b11110101 {
		t.Errorf("unique_states are %b, want River's default", mask)
	}
}

// TestUniqueArgsProperty compares unique_args with Go over random objects, written with and without white space and HTML escapes.
func TestUniqueArgsProperty(t *testing.T) {
	t.Parallel()
	pool := schematest.Pool(t)
	rapid.Check(t, func(r *rapid.T) {
		object := rapid.MapOfN(text(), jsonValue(3), 0, 5).Draw(r, "object")
		var written bytes.Buffer
		encoder := json.NewEncoder(&written)
		encoder.SetEscapeHTML(rapid.Bool().Draw(r, "escape"))
		if rapid.Bool().Draw(r, "indent") {
			encoder.SetIndent(" ", "\t")
		}
		if err := encoder.Encode(object); err != nil {
			r.Fatal(err)
		}
		var got string
		row := pool.QueryRow(t.Context(), `SELECT pelton.unique_args('', $1, NULL)`, written.String())
		if err := row.Scan(&got); err != nil {
			r.Fatalf("%v, from %s", err, written.String())
		}
		if want := riverArgs(object); got != want {
			r.Fatalf("unique args\n%s, want\n%s, from\n%s", got, want, written.String())
		}
	})
}

// riverArgs writes an object as River does for a unique key.
func riverArgs(object map[string]any) string {
	var keys []string
	for key := range object {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for i, key := range keys {
		quoted := `"` + key + `"`
		if strings.ContainsFunc(key, func(c rune) bool { return c < ' ' || c > 0x7f || c == '"' || c == '\\' }) {
			quoted = encoded(key)
		}
		keys[i] = quoted + ":" + encoded(object[key])
	}
	return "{" + strings.Join(keys, ",") + "}"
}

func encoded(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// text draws strings that Postgres can hold, with an eye on the characters that encoding/json escapes.
func text() *rapid.Generator[string] {
	odd := rapid.StringOfN(rapid.RuneFrom([]rune("ab.*\"\\/<>& \n\t\b\f\r\x01\x7fé€\u2028\u2029😀{}[]:,")), 0, 8, -1)
	free := rapid.Map(rapid.StringN(0, 8, -1), func(s string) string { return strings.ReplaceAll(s, "\x00", "") })
	return rapid.OneOf(odd, free)
}

func jsonValue(depth int) *rapid.Generator[any] {
	leaf := rapid.OneOf(rapid.Just[any](nil), text().AsAny(), rapid.Bool().AsAny(), rapid.IntRange(-1e9, 1e9).AsAny(),
		rapid.Float64Range(-1e300, 1e300).AsAny())
	if depth == 0 {
		return leaf
	}
	return rapid.OneOf(leaf, rapid.SliceOfN(jsonValue(depth-1), 0, 3).AsAny(),
		rapid.MapOfN(text(), jsonValue(depth-1), 0, 3).AsAny())
}

// TestUniqueConflictWithAnOpenTransaction inserts the same unique job in two transactions at once: the second waits for the
// first, and there is one job whichever way that ends. In READ COMMITTED: a stricter level gets its serialization failure.
func TestUniqueConflictWithAnOpenTransaction(t *testing.T) {
	t.Parallel()
	const query = `SELECT pelton.enqueue('k', unique_by_args => true)`
	for _, commit := range []bool{false, true} {
		pool := schematest.Pool(t)
		first, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		id := value[int64](t, first, query)
		got := make(chan int64, 1)
		go func() {
			var other int64
			err := pgx.BeginTxFunc(t.Context(), pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
				return tx.QueryRow(t.Context(), query).Scan(&other)
			})
			if err != nil {
				t.Errorf("the second: %v", err)
			}
			got <- other
		}()
		pgtest.Eventually(t, time.Minute, func() bool {
			return value[bool](t, pool, `SELECT EXISTS (SELECT FROM pg_stat_activity
				WHERE datname = current_database() AND wait_event_type = 'Lock' AND query = $1)`, query)
		}, "the second waits for the first")
		end := first.Rollback
		if commit {
			end = first.Commit
		}
		if err := end(t.Context()); err != nil {
			t.Fatal(err)
		}
		if other := <-got; (other == id) != commit {
			t.Errorf("the first made job %d (committed: %t), the second got %d", id, commit, other)
		}
		if n := value[int](t, pool, `SELECT count(*)::int FROM pelton.job_state`); n != 1 {
			t.Errorf("there are %d jobs, want 1", n)
		}
	}
}

package tick

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestCut: which of an hour's ticks fire after three hours away, and which of none, of some that are in time, and around a changed clock.
func TestCut(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, text, zone, policy, from, now string
		fires                               []string
	}{
		{"skip", "0 * * * *", "UTC", "skip", "2026-11-29T09:30:00Z", "2026-11-29T12:30:00Z", nil},
		{"latest", "0 * * * *", "UTC", "latest", "2026-11-29T09:30:00Z", "2026-11-29T12:30:00Z", []string{"2026-11-29T12:00:00Z"}},
		{"all", "0 * * * *", "UTC", "all:10", "2026-11-29T09:30:00Z", "2026-11-29T12:30:00Z", []string{
			"2026-11-29T10:00:00Z", "2026-11-29T11:00:00Z", "2026-11-29T12:00:00Z",
		}},
		{"all up to n", "0 * * * *", "UTC", "all:2", "2026-11-29T09:30:00Z", "2026-11-29T12:30:00Z", []string{"2026-11-29T11:00:00Z", "2026-11-29T12:00:00Z"}},
		{"all not too old", "0 * * * *", "UTC", "all:10:1h", "2026-11-29T09:30:00Z", "2026-11-29T12:30:00Z", []string{"2026-11-29T12:00:00Z"}},
		{"as old as allowed", "0 * * * *", "UTC", "all:10:90m", "2026-11-29T09:30:00Z", "2026-11-29T12:30:00Z", []string{"2026-11-29T11:00:00Z", "2026-11-29T12:00:00Z"}},
		{"from is included", "0 * * * *", "UTC", "all:10", "2026-11-29T10:00:00Z", "2026-11-29T11:00:00Z", []string{"2026-11-29T10:00:00Z", "2026-11-29T11:00:00Z"}},

		// A tick that is in time fires by every policy; by latest it is the last one.
		{"skip, in time", "* * * * *", "UTC", "skip", "2026-11-29T12:00:00Z", "2026-11-29T12:05:30Z", []string{"2026-11-29T12:05:00Z"}},
		{"latest, in time", "* * * * *", "UTC", "latest", "2026-11-29T12:00:00Z", "2026-11-29T12:05:30Z", []string{"2026-11-29T12:05:00Z"}},
		{"two in time", "*/30 * * * * *", "UTC", "latest", "2026-11-29T12:00:00Z", "2026-11-29T12:05:30Z", []string{
			"2026-11-29T12:04:30Z", "2026-11-29T12:05:00Z", "2026-11-29T12:05:30Z",
		}},
		{"all:1, two in time", "*/30 * * * * *", "UTC", "all:1", "2026-11-29T12:00:00Z", "2026-11-29T12:05:30Z", []string{
			"2026-11-29T12:04:30Z", "2026-11-29T12:05:00Z", "2026-11-29T12:05:30Z",
		}},
		{"latest is from", "0 10 * * *", "UTC", "latest", "2026-11-29T10:00:00Z", "2026-11-29T12:30:00Z", []string{"2026-11-29T10:00:00Z"}},
		{"none due", "0 0 * * *", "UTC", "latest", "2026-11-29T09:30:00Z", "2026-11-29T12:30:00Z", nil},

		// Dropped ticks do not count.
		{"latest is dropped", "30 1 * * *", "America/New_York", "latest", "2026-11-01T04:00:00Z", "2026-11-01T07:00:00Z", []string{"2026-11-01T05:30:00Z"}},
		{"last passes only", "30 1 * * *", "America/New_York", "all:2", "2026-10-31T04:00:00Z", "2026-11-01T07:00:00Z", []string{
			"2026-10-31T05:30:00Z", "2026-11-01T05:30:00Z",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var policy Missed
			if err := policy.UnmarshalText([]byte(test.policy)); err != nil {
				t.Fatal(err)
			}
			src := source(t, test.text, test.zone, Rule{})
			from, now := instantOf(test.from), instantOf(test.now)
			cut := Cut(policy, src, from, now, time.Minute)
			var fires []Tick
			for _, tick := range src.Between(nil, After(from.Add(-1)), now, 1000) {
				if tick.Runs() && !tick.At.Before(cut) {
					fires = append(fires, tick)
				}
			}
			if got := instants(fires); !slices.Equal(got, test.fires) {
				t.Errorf("from %v on: %v; want %v", cut, got, test.fires)
			}
		})
	}
}

// TestCutAsCounted: the cut lets as many fire as counting all ticks says.
func TestCutAsCounted(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		z := zone{location(t, rapid.SampledFrom(zones).Draw(t, "zone"))}
		src := source(t, texts(t), z.loc.String(), rules(t))
		now := instant(moment(t, z))
		from := now.Add(-time.Duration(rapid.Int64Range(0, int64(72*time.Hour)).Draw(t, "away")))
		grace := time.Duration(rapid.Int64Range(0, int64(2*time.Hour)).Draw(t, "grace"))
		n := rapid.IntRange(1, 50).Draw(t, "n")
		age := time.Duration(rapid.Int64Range(0, int64(72*time.Hour)).Draw(t, "age"))
		policy := rapid.SampledFrom([]Missed{MissedSkip, MissedLatest, MissedAll(n, 0), MissedAll(n, age)}).Draw(t, "policy")

		var due []time.Time // the last first
		for _, tick := range src.Between(nil, After(from.Add(-1)), now, 1_000_000) {
			if tick.Runs() {
				due = append(due, tick.At)
			}
		}
		slices.Reverse(due)
		cut := Cut(policy, src, from, now, grace)
		for i, at := range due {
			inTime := now.Sub(at) <= grace
			var want bool
			switch policy.kind {
			case missedLatest:
				want = i == 0
			case missedAll:
				want = i < n && (policy.maxAge == 0 || now.Sub(at) <= policy.maxAge)
			default:
			}
			if fires := !at.Before(cut); fires != (want || inTime) {
				t.Fatalf("%v, %d of %d, %v old: fires %v", policy, i, len(due), now.Sub(at), fires)
			}
		}
	})
}

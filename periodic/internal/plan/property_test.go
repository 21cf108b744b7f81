package plan_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/peltonq/pelton/periodic/internal/expr"
	"github.com/peltonq/pelton/periodic/internal/plan"
	"github.com/peltonq/pelton/periodic/internal/tick"
)

// Whatever happens, every tick up to Decided has exactly one verdict, but for the one that waits; with overlaps not allowed, nothing starts beside
// a run that goes on; and a schedule with a tick to come wakes.
func TestEveryTickHasOneVerdict(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		start := time.Date(2026, 3, 7, 12, 0, 0, 0, time.UTC)
		spec := drawSpec(t, start)
		src := spec.Ticks
		step := plan.Renew(spec, plan.State{}, time.Time{}, start)
		now, runs := start, int64(0)
		verdicts := map[tick.Tick]int{}
		for range rapid.IntRange(1, 30).Draw(t, "looks") {
			now = now.Add(time.Duration(rapid.IntRange(1, 40_000).Draw(t, "after")) * time.Second / 4)
			live := step.State.Run.Live()
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0, 1:
				if live {
					step.State.Run.Ended, step.State.Run.EndedAt, live = true, now, false
				}
			case 2:
				step = plan.Resume(spec, step.State, now)
			}
			step = plan.Decide(spec, step.State, now, rapid.IntRange(1, 50).Draw(t, "limit"))
			last := time.Time{}
			for _, v := range step.Verdicts {
				verdicts[v.Tick]++
				if v.Reason != plan.Superseded { // it may have waited for long
					if v.Tick.At.Before(last) {
						t.Fatalf("%v comes after %v", v.Tick.At, last)
					}
					last = v.Tick.At
				}
				if v.Fire == (v.Reason != "") || v.Fire && !v.Tick.Runs() {
					t.Fatalf("verdict %+v", v)
				}
				if v.Fire && live && spec.Overlap != plan.Allow {
					t.Fatalf("%v starts beside a run that goes on", v.Tick.At)
				}
				if v.Fire {
					runs++
					live = true
					step.State.Run = plan.Run{Job: runs, Since: now}
				}
			}
			if step.Wake.IsZero() && !step.State.Next.IsZero() {
				t.Fatal("a schedule with a tick to come does not wake")
			}
		}
		for _, want := range src.Between(nil, tick.After(start), step.State.Decided, 1_000_000) {
			n := verdicts[want]
			delete(verdicts, want)
			if waits := want.Runs() && want.At.Equal(step.State.Waiting); waits && n == 0 || !waits && n == 1 {
				continue
			}
			t.Fatalf("tick %+v has %d verdicts; %+v", want, n, step.State)
		}
		if len(verdicts) > 0 {
			t.Fatalf("verdicts of ticks that are none of the schedule's, or still to be decided: %v", verdicts)
		}
	})
}

func drawSpec(t *rapid.T, start time.Time) *plan.Spec {
	duration := func(name string, most int) time.Duration {
		return time.Duration(rapid.IntRange(0, most).Draw(t, name)) * time.Second
	}
	spec := &plan.Spec{
		ID:      rapid.Int64Range(1, 1000).Draw(t, "id"),
		Overlap: rapid.SampledFrom([]plan.Overlap{plan.Allow, plan.Skip, plan.Queue, plan.Cancel}).Draw(t, "overlap"),
		Grace:   duration("grace", 120), Spread: duration("spread", 600), Jitter: duration("jitter", 600),
	}
	policies := []tick.Missed{tick.MissedSkip, tick.MissedLatest, tick.MissedAll(3, 0), tick.MissedAll(100, time.Hour)}
	spec.Missed = rapid.SampledFrom(policies).Draw(t, "missed")
	spec.AfterPause = rapid.SampledFrom(policies).Draw(t, "after pause")
	loc, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	rule := tick.Rule{
		Gap:     rapid.SampledFrom([]tick.Gap{tick.GapNext, tick.GapSkip}).Draw(t, "gap"),
		Overlap: rapid.SampledFrom([]tick.Overlap{tick.OverlapFirst, tick.OverlapLast, tick.OverlapBoth}).Draw(t, "repeat"),
	}
	text := rapid.SampledFrom([]string{"30 2 * * *", "*/10 * * * *", "0 1-3 * * *", "20 */4 * * *", "*/7 * * * * *"}).Draw(t, "cron")
	e, err := expr.Parse(text, start)
	if err != nil {
		t.Fatal(err)
	}
	src := tick.New(e, loc, rule, start)
	spec.Ticks = &src
	return spec
}

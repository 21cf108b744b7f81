package periodic

import (
	"slices"
	"testing"
	"time"
)

// A push strands the schedules that go on: not one that is over, is paused, runs a version of its own, or a flow that is still there.
func TestStranded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	target := func(flow string, version int) *FlowTarget {
		return &FlowTarget{Project: "p", Flow: flow, Version: version}
	}
	ended := r.now().Add(-time.Minute)
	for _, s := range []Schedule{
		{Name: "cron", Cron: "0 3 * * *", Flow: target("gone", 0)},
		{Name: "delay", Delay: Duration(time.Hour), Flow: target("gone", 0)},
		{Name: "delay over", Delay: Duration(time.Hour), EndAt: &ended, Flow: target("gone", 0)},
		{Name: "once over", At: &ended, Flow: target("gone", 0)},
		{Name: "own version", Cron: "0 3 * * *", Flow: target("gone", 1)},
		{Name: "there", Cron: "0 3 * * *", Flow: target("stays", 0)},
		{Name: "paused", Cron: "0 3 * * *", Flow: target("gone", 0)},
		{Name: "another project", Cron: "0 3 * * *", Flow: &FlowTarget{Project: "q", Flow: "gone"}},
	} {
		r.stored(s, 0)
	}
	// The run of a fixed delay goes on: there is no next tick until it has ended.
	if _, err := r.pool.Exec(t.Context(), `UPDATE pelton.schedule_due d SET next_at = NULL FROM pelton.schedule s WHERE s.id = d.schedule_id AND s.name = 'delay'`); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Pause(t.Context(), "paused"); err != nil {
		t.Fatal(err)
	}
	stranded, err := r.Stranded(t.Context(), "p", []string{"stays"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range stranded {
		names = append(names, s.Name)
	}
	if want := []string{"cron", "delay"}; !slices.Equal(names, want) {
		t.Errorf("stranded are %q, want %q", names, want)
	}
}

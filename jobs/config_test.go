package jobs

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/peltonq/pelton/schema"
)

func TestConfigRefusesRetentionsBelowZero(t *testing.T) {
	t.Parallel()
	c := Config{Retention: schema.Retention{Jobs: -time.Hour}}
	if err := c.withDefaults().validate(); err == nil || !strings.Contains(err.Error(), "retention of jobs is -1h") {
		t.Errorf("a retention below zero: %v", err)
	}
}

func TestQueueNamesAreRivers(t *testing.T) {
	t.Parallel()
	rivers := regexp.MustCompile(`^(?:[a-z0-9])+(?:[_|\-]?[a-z0-9]+)*$`)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-zA-Z0-9_|\- é]{0,8}`).Draw(t, "name")
		if got, want := isQueueName(name), rivers.MatchString(name); got != want {
			t.Fatalf("queue name %q accepted: %v, by River: %v", name, got, want)
		}
	})
}

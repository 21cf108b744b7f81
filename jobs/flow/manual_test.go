package flow_test

import (
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/peltonq/pelton/jobs/flow"
)

// TestExamplesOfTheManual runs every flow that the pages show.
func TestExamplesOfTheManual(t *testing.T) {
	t.Parallel()
	h, secrets := newSecretHouse(t)
	_, err := secrets.Set(t.Context(), "p", "DB_PASSWORD", []byte("of the database"))
	must(t, err)
	h.flows.Stop()
	flows, err := flow.NewClient(h.pool, h.jobs, &flow.Config{
		Logger: slog.New(slog.NewTextHandler(testLog{t}, nil)), Types: map[string]string{"hive": "echo beeline -f ${hive.script}"},
	})
	must(t, err)
	h.flows = flows
	flows.Start(t.Context())
	defer flows.Stop()
	for page, least := range map[string]int{"azkaban.md": 7, "flows.md": 4} {
		text, err := os.ReadFile("../../docs/" + page)
		must(t, err)
		blocks := strings.Split(string(text), "\n```yaml\n")[1:]
		if len(blocks) < least {
			t.Errorf("%s has %d flows, want %d or more", page, len(blocks), least)
		}
		for _, block := range blocks {
			block, _, _ = strings.Cut(block, "\n```\n")
			h.push(write(t, map[string]string{
				"p.project": "azkaban-flow-version: 2.0\n", "f.flow": strings.ReplaceAll(block, "queue: etl", "queue: default"),
				"dump.sh":    `test "$PGPASSWORD" = "of the database"`,
				"extract.sh": `echo '{"rows": 42, "tables": ["orders", "customers"]}' > $JOB_OUTPUT_PROP_FILE`,
			}))
			if got := h.ended(h.start("f", flow.Options{})); !strings.HasPrefix(got, "SUCCEEDED:") {
				t.Errorf("%s: %s\n%s", page, got, block)
			}
		}
	}
}

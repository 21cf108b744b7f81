package main

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// operations are the operations of the API that do what commands do.
var operations = map[string]string{
	"job enqueue":         "jobs-enqueue jobs-enqueue-many",
	"job show":            "jobs-get",
	"job list":            "jobs-list",
	"job logs":            "jobs-log jobs-log-follow",
	"job cancel":          "jobs-cancel",
	"job retry":           "jobs-retry",
	"job reschedule":      "jobs-reschedule",
	"job delete":          "jobs-delete",
	"queue list":          "queues-list",
	"queue pause":         "queues-pause",
	"queue resume":        "queues-resume",
	"dead list":           "dead-list",
	"dead show":           "dead-get",
	"dead redrive":        "dead-redrive dead-redrive-many",
	"dead discard":        "dead-discard dead-discard-many",
	"partitions list":     "partitions-list",
	"partitions maintain": "partitions-maintain",
	"audit list":          "audit-list",
	"executor list":       "executors-list",
	"user add":            "users-add",
	"user list":           "users-list",
	"user set-password":   "users-set-password",
	"user disable":        "users-disable",
	"user enable":         "users-enable",
	"user role":           "users-set-role",
	"token create":        "tokens-create",
	"token list":          "tokens-list",
	"token revoke":        "tokens-revoke",
	"job erase":           "jobs-erase",
	"secret list":         "secrets-list",
	"secret set":          "secrets-set",
	"secret delete":       "secrets-delete",
	"secret rekey":        "secrets-rekey",
	"alert list":          "alerts-list",
	"alert rules":         "alerts-rules",
	"alert mutes":         "alerts-mutes",
	"alert mute":          "alerts-mute",
	"alert unmute":        "alerts-unmute",
	"alert test":          "alerts-test",
	"flow push":           "flows-push", "flow list": "flows-list", "flow versions": "flows-versions", "flow graph": "flows-graph",
	"flow run": "runs-start", "flow runs": "runs-list", "flow show": "runs-get", "flow why": "runs-why", "flow logs": "runs-log",
	"flow kill": "runs-kill", "flow pause": "runs-pause", "flow resume": "runs-resume", "flow retry": "runs-retry", "flow rerun": "runs-rerun",
	"flow succeed":  "runs-succeed",
	"schedule list": "schedules-list", "schedule show": "schedules-get", "schedule put": "schedules-put", "schedule preview": "schedules-preview",
	"schedule ticks": "schedules-ticks", "schedule delete": "schedules-delete", "schedule pause": "schedules-pause",
	"schedule resume": "schedules-resume", "schedule trigger": "schedules-trigger", "schedule backfill": "backfills-start",
	"schedule backfill list": "backfills-list", "schedule backfill show": "backfills-get", "schedule backfill cancel": "backfills-cancel",
}

// local are commands that cannot be done from afar, and why.
var local = map[string]string{
	"dev":          "runs a database, a scheduler and executors here",
	"server":       "runs the server that has the API",
	"worker":       "runs an executor here",
	"migrate *":    "makes the tables that the server needs",
	"grants":       "needs the rights of the tables' owner",
	"secret key":   "writes a file here",
	"alert check":  "reads a file here, and needs no database",
	"check":        "looks at the database, where no server answers",
	"loadtest *":   "measures a database of its own",
	"completion *": "is for shells",
	"help":         "is for people",
}

func listed(list []string, path string) bool {
	noun, _, _ := strings.Cut(path, " ")
	return slices.Contains(list, path) || slices.Contains(list, noun+" *")
}

// Whatever a command does that can be done from afar, the API does too.
func TestEachCommandHasAnOperation(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	served := s.launch("server", "--listen", "127.0.0.1:0")
	endpoint := as[string](t, served.started()["endpoint"])
	response, err := http.Get(endpoint + "/openapi.json") //nolint:gosec // the test's own server
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // only read
	var doc struct {
		Paths map[string]map[string]struct{ OperationID string }
	}
	if err := json.NewDecoder(response.Body).Decode(&doc); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, item := range doc.Paths {
		for _, op := range item {
			known[op.OperationID] = true
		}
	}
	var reasons []string
	for path := range local {
		reasons = append(reasons, path)
	}
	commands := map[string]bool{}
	var walk func(cmd *cobra.Command, path string)
	walk = func(cmd *cobra.Command, path string) {
		if path != "" {
			commands[path] = true
		}
		for _, child := range cmd.Commands() {
			walk(child, strings.TrimSpace(path+" "+child.Name()))
		}
		ids, done := operations[path]
		switch {
		case done:
			for id := range strings.FieldsSeq(ids) {
				if !known[id] {
					t.Errorf("pelton %s: the API has no operation %s", path, id)
				}
			}
		case cmd.HasSubCommands(), listed(reasons, path):
		default:
			t.Errorf("pelton %s: which operation of the API does this? Name it in operations, or say in local why there is none", path)
		}
	}
	walk((&app{}).root(), "")
	for path := range operations {
		if !commands[path] {
			t.Errorf("there is no command pelton %s", path)
		}
	}
	for _, path := range reasons {
		if noun, isAll := strings.CutSuffix(path, " *"); !commands[noun] && noun != "completion" && noun != "help" || !isAll && !commands[path] && path != "help" {
			t.Errorf("there is no command pelton %s", path)
		}
	}
}

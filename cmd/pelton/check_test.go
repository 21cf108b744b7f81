package main

import (
	"os"
	"strings"
	"testing"
)

// What is given is not exchanged for a default, and what cannot be is refused before anything is begun: no database is there.
func TestFlagsThatCannotBe(t *testing.T) {
	t.Parallel()
	s := shellOn(t, "postgres://127.0.0.1:1/x")
	for line, says := range map[string]string{
		"server --keep-jobs -1h":                   "--keep-jobs is -1h0m0s, want a time above zero",
		"server --keep-jobs 0s":                    "--keep-jobs is 0s, want a time above zero",
		"dev --keep-logs 0s":                       "--keep-logs is 0s",
		"partitions maintain --keep-dead 0s":       "--keep-dead is 0s",
		"server --shutdown-timeout -1s":            "--shutdown-timeout is -1s, want 0 or more",
		"worker --shutdown-timeout -1s":            "--shutdown-timeout is -1s, want 0 or more",
		"worker --heartbeat 0s":                    "--heartbeat is 0s",
		"worker --queues=":                         "--queues is empty: name the queues to work",
		"worker --queues default:0":                "want 1 to 10000 jobs at once",
		"worker --queues a,,b":                     "want NAME:JOBS",
		"server --worker --queues=":                "--queues is empty",
		"server --listen bogus":                    `--listen is "bogus", want HOST:PORT`,
		"server --listen 127.0.0.1:bogus":          "want HOST:PORT",
		"job enqueue noop --priority 0":            "--priority is 0, want 1 or more",
		"job enqueue noop --max-attempts 0":        "--max-attempts is 0, want 1 or more",
		"job enqueue --file x --from-line 0":       "--from-line is 0, want 1 or more",
		"job logs 5 --run 0":                       "--run is 0, want 1 or more",
		"job logs 5 --tail 0":                      "--tail is 0, want 1 or more",
		"audit list --before 0":                    "--before is 0, want 1 or more",
		"loadtest drain --jobs 0":                  "--jobs is 0, want 1 or more",
		"loadtest drain --rounds 0":                "--rounds is 0, want 1 or more",
		"loadtest drain --jobs 5000001":            "jobs: 5000001 is not between",
		"loadtest drain --engine bogus":            `engine "bogus": want pelton or river`,
		"loadtest wake --gap-min 2s --gap-max 1s":  "gaps: 2s to 1s is no range",
		"loadtest idle --settle -1s":               "times must not be negative",
		"loadtest idle --engine pelton --for 0s":   "--for is 0s, want a time above zero",
		"loadtest idle --engine pelton,pelton":     "is named twice",
		"loadtest wake --inserts 0":                "--inserts is 0",
		"loadtest drain --engine river --batch 0 ": "--batch is 0",
	} {
		s.fails(exitUsage, says, strings.Fields(line)...)
	}
}

// The report alone is on stdout, whatever else is told.
func TestMeasuredAsJSON(t *testing.T) {
	t.Parallel()
	s := shellOn(t, "")
	r := s.try("", append([]string{"loadtest", "drain", "--jobs", "500", "--rounds", "1", "--workers", "50", "--engine", "pelton", "--json"}, programsFlag()...)...)
	docs := parseLines(t, r.out)
	if r.code != exitOK || len(docs) != 1 || docs[0]["scenario"] != "drain" || !strings.Contains(r.err, "insert/s") {
		t.Errorf("exit code %d, stdout %q, stderr %q", r.code, r.out, r.err)
	}
}

// programsFlag names the programs of PostgreSQL that the tests use, if they were told.
func programsFlag() []string {
	if bin := os.Getenv("PELTON_TEST_PG_BIN"); bin != "" {
		return []string{"--postgres-bin", bin}
	}
	return nil
}

func TestAddressesAreShownWithoutPasswords(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"postgres://me:secret@db/x":                 "postgres://me:xxxxx@db/x",
		"postgres://me@db/x?password=secret&a=b":    "postgres://me@db/x?password=xxxxx&a=b",
		"host=db password=secret user=me":           "host=db password=xxxxx user=me",
		`host=db password = 'a \'secret' user=me`:   "host=db password = xxxxx user=me",
		"postgres://me@db/x?sslmode=disable":        "postgres://me@db/x?sslmode=disable",
		"postgres:///x?host=/run&sslpassword=hello": "postgres:///x?host=/run&sslpassword=xxxxx",
	} {
		if got := withoutPassword(address); got != want {
			t.Errorf("%s is shown as %s, want %s", address, got, want)
		}
	}
}

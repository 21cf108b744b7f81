package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// unit is what a unit file of systemd's says: all values of a name, by section.
func unit(t *testing.T, file string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	values, section := map[string][]string{}, ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch name, value, is := strings.Cut(line, "="); {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			section = line
		case !is:
			t.Errorf("%s: %q is no setting", file, line)
		default:
			values[section+name] = append(values[section+name], value)
		}
	}
	return values
}

// What the units of systemd's call is a command line of this program, they wait for longer than it takes to stop, and systemd understands them.
func TestUnits(t *testing.T) {
	t.Parallel()
	users := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(root, "deploy/systemd/*.service"))
	if err != nil || len(files) != 2 {
		t.Fatalf("units: %q, %v", files, err)
	}
	for _, file := range files {
		u := unit(t, file)
		words := strings.Fields(u["[Service]ExecStart"][0])
		for i, word := range words {
			words[i] = strings.NewReplacer("${QUEUES}", "default:10,etl:2", "%C", "/var/cache", "%i", "etl").Replace(word)
		}
		cmd, err := commandLine(words[1:])
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		shutdown, err := time.ParseDuration(flag(cmd, "shutdown-timeout"))
		if err != nil {
			t.Fatal(err)
		}
		patient, err := time.ParseDuration(strings.Replace(u["[Service]TimeoutStopSec"][0]+"s", "mins", "m", 1))
		// Beside what jobs are given: the programs' time between SIGTERM and SIGKILL, and the ends of the log, the endpoint and the rest.
		if err != nil || patient < shutdown+30*time.Second {
			t.Errorf("%s: TimeoutStopSec is %v (%v), --shutdown-timeout %v", file, patient, err, shutdown)
		}
		for name, want := range map[string]string{
			"[Service]KillMode": "mixed", "[Service]Restart": "always", "[Service]Type": "exec", "[Service]NoNewPrivileges": "yes",
			"[Service]ProtectSystem": "strict", "[Service]PrivateTmp": "yes", "[Unit]StartLimitIntervalSec": "0",
		} {
			if got := strings.Join(u[name], " "); got != want {
				t.Errorf("%s: %s is %q, want %q", file, name, got, want)
			}
		}
		// The key of secrets is root's, and handed over under the name that the environment gives.
		handed, _, _ := strings.Cut(strings.Join(u["[Service]LoadCredential"], " "), ":")
		if handed == "" || !slices.Contains(u["[Service]Environment"], "PELTON_SECRET_KEY_FILE=%d/"+handed) {
			t.Errorf("%s: the environment is %q, the key is handed over as %q", file, u["[Service]Environment"], handed)
		}
		user := strings.Join(u["[Service]User"], " ")
		if user == "" || user == "root" || users[user] { // what a job's program can read is not the server's
			t.Errorf("%s: user %q, want one of its own", file, user)
		}
		users[user] = true
	}
}

func TestSystemdUnderstandsTheUnits(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("there is no systemd-analyze on this machine, so the units are only read by TestUnits")
	}
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pelton-server.service", "pelton-worker@.service"} {
		text, err := os.ReadFile(filepath.Join(root, "deploy/systemd", name))
		if err != nil {
			t.Fatal(err)
		}
		// The program is installed nowhere on this machine: any will do.
		copied := filepath.Join(dir, strings.Replace(name, "@", "@etl", 1))
		if err := os.WriteFile(copied, []byte(strings.ReplaceAll(string(text), "/usr/local/bin/pelton", self)), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), program, "verify", "--man=no", "--recursive-errors=no", copied).CombinedOutput()
		if err != nil || strings.Contains(string(out), filepath.Base(copied)) {
			t.Errorf("systemd-analyze verify %s: %v\n%s", name, err, out)
		}
	}
}

package alert_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/peltonq/pelton/admin/alert"
)

func TestFile(t *testing.T) {
	t.Parallel()
	f, err := alert.Parse("alerts.yaml", []byte(`
name: prod
every: 10s
remind: 1h
channels:
  ops: {type: mail, to: ops@example.org, from: pelton@example.org, smtp: smtp://mail.example.org}
  pager: {type: webhook, url: https://pager.example.org/x, secret_env: PAGER}
  chat: {type: slack, url_file: slack-url}
rules:
  payments:
    type: failure_rate
    queues: [payments, refunds]
    over: 10%
    until: 0.05
    min_runs: 50
    for: 2m
    severity: critical
    channels: [pager]
  slow: {type: oldest_age, queues: payments, over: 10m, until: 2m, remind: 0s}
`))
	if err != nil {
		t.Fatal(err)
	}
	if f.Name != "prod" || f.Every != alert.Duration(10*time.Second) || f.Queue != alert.DefaultQueue || len(f.Channels) != 3 || len(f.Rules) != 2 {
		t.Errorf("%+v", f)
	}
	r := f.Rules[0]
	if r.Over != 0.1 || r.Until != 0.05 || r.MinRuns != 50 || r.For.String() != "2m" || strings.Join(r.Queues, " ") != "payments refunds" ||
		strings.Join(r.Channels, " ") != "pager" || r.Severity != alert.Critical || r.Remind.String() != "1h" || r.Window.String() != "5m" {
		t.Errorf("%+v", r)
	}
	if r := f.Rules[1]; r.OverAge.String() != "10m" || r.UntilAge.String() != "2m" || strings.Join(r.Channels, " ") != "chat ops pager" || r.Remind != 0 {
		t.Errorf("%+v", r)
	}
}

// A file that names channels alone has the rules that are built in, and those tell all channels.
func TestFileOfChannels(t *testing.T) {
	t.Parallel()
	for text, channels := range map[string]int{"": 0, "channels: {ops: {type: mail, to: [a@example.org]}}\nremind: 1d": 1} {
		f, err := alert.Parse("x", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Rules) != len(alert.Types()) {
			t.Errorf("%d rules", len(f.Rules))
		}
		for _, r := range f.Rules {
			if len(r.Channels) != channels || channels > 0 && r.Remind.String() != "24h" {
				t.Errorf("%+v", r)
			}
		}
	}
}

// All faults are told at once, each with its line.
func TestFaultsOfAFile(t *testing.T) {
	t.Parallel()
	text := `every: 5m
qeue: x
remind: often
channels:
  ops: {type: mial, to: [a@example.org]}
  mail: {type: mail, to: [nobody], smtp: "smtp://u:secret@h"}
  empty: {type: mail}
  pager: {type: webhook, url: "ftp://x", url_env: X, secret: geheim}
  chat: {type: slack, url: "https://hooks.example.org/T0/secret"}
  hook: {type: webhook, url: "https://u:hidden@h/"}
  none:
  "bad name!": {type: webhook, url: "https://h/"}
rules:
  a: {type: failure_rat}
  b: {typ: failure_rate}
  c: {type: failure_rate, over: 120%, min_runs: 0, windw: 5m, severity: critcal, channels: [pagr]}
  d: {type: oldest_age, over: 1m, until: 2m, kinds: [x]}
  e: {type: dead_letters, more_than: 5, queues: [q]}
  e: {type: lost_jobs}
  f: [1]
  g: {type: missed_ticks, schedules: [], window: 10}
  h: {type: sla_missed, for: 40d, flows: {a: b}}
  i: {type: lost_jobs, over: 5}
`
	_, err := alert.Parse("alerts.yaml", []byte(text))
	file, is := errors.AsType[*alert.FileError](err)
	if !is {
		t.Fatalf("%v", err)
	}
	want := []string{
		`1: every: 5m is out of range: want 1s to 30s`,
		`2: unknown key "qeue"; did you mean "queue"?`,
		`3: remind: "often" is no time: want one as 90s, 15m, 1h30m or 7d`,
		`5: channel ops: type: "mial"; did you mean "mail"?`,
		`6: channel mail: "nobody" is no e-mail address`,
		`6: channel mail: smtp holds a password, which does not belong here: give smtp_env or smtp_file`,
		`7: channel empty: has nobody to write to: want to, a list of addresses`,
		`8: channel pager: secret is a secret and does not belong here: give secret_env or secret_file`,
		`9: channel chat: url is a secret and does not belong here: give url_env or url_file`,
		`10: channel hook: url holds a password, which does not belong here: give url_env or url_file`,
		`11: channel none: want keys with values, type among them`,
		`12: channel "bad name!": a name has up to 100 letters, digits, dots, dashes and underscores, a letter or digit first`,
		`14: rule a: type: "failure_rat"; did you mean "failure_rate"?`,
		`15: rule b: has no type; want one of dead_executor, dead_letters, duties, failure_rate, lost_jobs, missed_ticks, oldest_age, partitions, sla_missed`,
		`16: rule c: over: want a share from 0% to less than 100%, as 20% or 0.2, not "120%"`,
		`16: rule c: min_runs: want a whole number from 1 to 10000, not "0"`,
		`16: rule c: unknown key "windw"; did you mean "window"?`,
		`16: rule c: severity: "critcal"; did you mean "critical"?`,
		`16: rule c: unknown channel "pagr"; did you mean "pager"?`,
		`17: rule d: unknown key "kinds"; want one of channels, for, group, over, queues, recover_after, remind, severity, type, until`,
		`17: rule d: until is beyond over: it says down to where it has to fall to count as recovered`,
		`18: rule e: more_than counts all dead letters: it goes without queues and kinds`,
		`19: rules: duplicate key e: line 18 has it too`,
		`20: rule f: want keys with values, type among them`,
		`21: rule g: schedules is an empty list`,
		`21: rule g: window: "10" is no time: want one as 90s, 15m, 1h30m or 7d`,
		`22: rule h: for: 40d is out of range: want 0s to 24h`,
		`22: rule h: flows: want text, not keys with values`,
		`23: rule i: unknown key "over"; want one of channels, for, group, recover_after, remind, severity, type`,
	}
	var got []string
	for _, f := range file.Faults {
		got = append(got, strings.TrimPrefix(f.String(), "alerts.yaml:"))
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("faults are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, secret := range []string{"secret@h", "geheim", "T0/secret", "hidden"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("a fault repeats %q", secret)
		}
	}
}

func TestWhatIsNoFile(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a: [":                          "is no YAML",
		"\xff":                          "is not UTF-8 text",
		"- a":                           "want keys with values, not a list",
		"rules: {}":                     "rules holds none",
		"rules: x":                      `want keys with values, not "x"`,
		"name: a\n---\nname: b":         "holds more than one document",
		strings.Repeat("[", 5000):       "is no YAML",
		strings.Repeat(" ", 2<<20):      "is larger than",
		"name: &a x\nqueue: *a":         "want text, not an alias",
		"rules: {a: {type: lost_jobs,}": "is no YAML",
	} {
		if _, err := alert.Parse("x", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
	if _, err := alert.Load(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestSecretsOfAFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "alerts.yaml")
	text := `channels:
  ops: {type: mail, to: [a@example.org]}
  pager: {type: webhook, url_env: URL, secret_file: secret}
  chat: {type: slack, url_file: slack}
`
	for name, content := range map[string]string{"alerts.yaml": text, "secret": " s3cret\n", "slack": "no URL, but secret"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := alert.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	err = f.CheckSecrets(alert.Environment{})
	for _, want := range []string{"channel ops: no mail server", "channel pager: url: variable URL is not set", "channel chat: url: want a URL"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "but secret") {
		t.Errorf("the error repeats a secret: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "slack"), []byte("https://hooks.example.org/x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := alert.Environment{
		Variable: func(string) string { return "https://example.org" }, SMTP: "smtp://localhost", MailFrom: "pelton@example.org",
	}
	if err := f.CheckSecrets(env); err != nil {
		t.Error(err)
	}
}

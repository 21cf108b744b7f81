package admin_test

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"go.yaml.in/yaml/v4"

	"github.com/peltonq/pelton/admin"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/periodic"
	"github.com/peltonq/pelton/schema/schematest"
)

// promtool runs the program of Prometheus in a directory of the repository.
func promtool(t *testing.T, dir string, args ...string) {
	t.Helper()
	path := os.Getenv("PELTON_TEST_PROMTOOL")
	if path == "" {
		var err error
		if path, err = osexec.LookPath("promtool"); err != nil {
			t.Skip("there is no promtool, and PELTON_TEST_PROMTOOL does not name one: CI has it, from Debian's package prometheus")
		}
	}
	cmd := osexec.CommandContext(t.Context(), path, args...)
	cmd.Dir = filepath.Join("..", dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// What Prometheus is told is right, and the alerts fire when rules_test.yml says, and only then.
func TestPromtool(t *testing.T) {
	t.Parallel()
	promtool(t, "deploy", "check", "config", "prometheus.yml") // and the rules that it names
	promtool(t, "deploy/prometheus", "test", "rules", "rules_test.yml")
}

// rule is an alert.
type rule struct {
	Alert, Expr         string
	Labels, Annotations map[string]string
}

func readRules(t *testing.T) []rule {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	parseYAML(t, "../deploy/prometheus/rules.yml", &file)
	var all []rule
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) < 15 {
		t.Fatalf("only %d rules", len(all))
	}
	return all
}

func parseYAML(t *testing.T, path string, into any) {
	t.Helper()
	if err := yaml.Unmarshal(readFile(t, path), into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Every alert says what it is, what to do, and where more of that is written, and has a test in which it fires and one in which it does not.
func TestAlertsAreExplainedAndTested(t *testing.T) {
	t.Parallel()
	var file struct {
		Tests []struct {
			AlertRules []struct {
				Alertname string
				Alerts    []any `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
			Expressions []struct {
				Samples []struct{ Labels string } `yaml:"exp_samples"`
			} `yaml:"promql_expr_test"`
		}
	}
	parseYAML(t, "../deploy/prometheus/rules_test.yml", &file)
	fires := map[string]bool{}
	for _, test := range file.Tests {
		for _, r := range test.AlertRules {
			fires[r.Alertname] = fires[r.Alertname] || len(r.Alerts) > 0
		}
		for _, e := range test.Expressions {
			for _, s := range e.Samples {
				if m := regexp.MustCompile(`alertname="(\w+)",alertstate="firing"`).FindStringSubmatch(s.Labels); m != nil {
					fires[m[1]] = true
				}
			}
		}
	}
	quiet := string(readFile(t, "../deploy/prometheus/rules_test.yml"))
	quiet, _, _ = strings.Cut(quiet, "exp_samples: []") // the first test: nothing fires
	runbook := string(readFile(t, "../docs/runbook.md"))
	for _, r := range readRules(t) {
		if !fires[r.Alert] {
			t.Errorf("%s fires in no test", r.Alert)
		}
		for name := range parseExpression(r.Expr).metrics {
			if !strings.Contains(quiet, "'"+name) {
				t.Errorf("%s: the first test has no good %s", r.Alert, name)
			}
		}
		if s := r.Labels["severity"]; s != "critical" && s != "warning" {
			t.Errorf("%s has severity %q", r.Alert, s)
		}
		if r.Annotations["summary"] == "" || len(r.Annotations["description"]) < 40 {
			t.Errorf("%s does not say what to do", r.Alert)
		}
		if want := "/docs/runbook.md#" + strings.ToLower(r.Alert); !strings.HasSuffix(r.Annotations["runbook_url"], want) {
			t.Errorf("%s: more is at %s, want %s", r.Alert, r.Annotations["runbook_url"], want)
		}
		if !strings.Contains(runbook, "\n## "+r.Alert+"\n") {
			t.Errorf("docs/runbook.md has no section %s", r.Alert)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^## (\w+)$`).FindAllStringSubmatch(runbook, -1) {
		if !slices.ContainsFunc(readRules(t), func(r rule) bool { return r.Alert == m[1] }) {
			t.Errorf("docs/runbook.md tells of an alert %s that there is not", m[1])
		}
	}
}

// scraped are the labels of metrics by name, as a server shows them.
type scraped map[string]map[string]bool

// scrape reads the metrics of a server over HTTP.
func scrape(t *testing.T, m *admin.Metrics, s *server) scraped {
	t.Helper()
	where, err := admin.NewServer(admin.Config{Pool: s.pool, Metrics: m, Listen: "127.0.0.1:0", Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	if err := where.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := where.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	response, err := http.Get(where.URL() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v", response.Status, err)
	}
	all := scraped{}
	for _, line := range regexp.MustCompile(`(?m)^(\w+)(?:\{(.*)\})? \S+$`).FindAllStringSubmatch(string(text), -1) {
		if all[line[1]] == nil {
			all[line[1]] = map[string]bool{}
		}
		for _, label := range regexp.MustCompile(`(\w+)="(?:[^"\\]|\\.)*"`).FindAllStringSubmatch(line[2], -1) {
			all[line[1]][label[1]] = true
		}
	}
	return all
}

// busy makes a server that does a bit of everything, and scrapes it.
func busy(t *testing.T) scraped {
	t.Helper()
	s := newServer(t, schematest.Audited(t))
	insert(t, s.queue, "fail", &river.InsertOpts{MaxAttempts: 1})
	insert(t, s.queue, "", nil)
	s.run(t, "sales", flow.Options{}, "good")
	s.put(t, periodic.Schedule{Name: "daily", Every: periodic.Duration(24 * time.Hour)})
	if _, err := s.schedules.Trigger(t.Context(), "daily"); err != nil {
		t.Fatal(err)
	}
	waitValue(t, s.metrics, 1, "pelton_flow_runs_ended_total", "sales", "SUCCEEDED")
	waitValue(t, s.metrics, 1, "pelton_runs_finished_total", "default", "task", "discarded")
	waitValue(t, s.metrics, 1, "pelton_schedule_tick_to_start_seconds")
	waitValue(t, s.metrics, 0, "pelton_jobs_lost")
	return scrape(t, s.metrics, s)
}

// asked is an expression of the dashboard or of an alert, and the labels that its legend or its texts name.
type asked struct {
	where, expr string
	labels      []string
}

// Whatever docs/metrics.md names, the dashboard shows and the alerts watch is there on a server, with the labels that they name.
func TestWhatIsAskedForIsThere(t *testing.T) {
	t.Parallel()
	there := busy(t)
	for name, labels := range series {
		if there[name] == nil && there[name+"_count"] == nil {
			t.Errorf("there is no %s", name)
		}
		for label := range strings.SplitSeq(labels, ",") {
			if label != "" && !there[name][label] && !there[name+"_bucket"][label] {
				t.Errorf("%s has no label %s", name, label)
			}
		}
	}
	for name := range there {
		plain := regexp.MustCompile(`_(bucket|count|sum)$`).ReplaceAllString(name, "")
		if _, known := series[plain]; !known && strings.HasPrefix(name, "pelton_") {
			t.Errorf("%s is there, and nobody has written of it", name)
		}
	}
	documented := string(readFile(t, "../docs/metrics.md"))
	all := append(askedByAlerts(t), askedByDashboard(t)...)
	if len(all) < 80 {
		t.Fatalf("only %d expressions", len(all))
	}
	shown := map[string]bool{}
	for _, a := range all {
		e := parseExpression(a.expr)
		has := map[string]bool{"instance": true, "job": true}
		for name, labels := range e.metrics {
			shown[regexp.MustCompile(`_(bucket|count|sum)$`).ReplaceAllString(name, "")] = true
			if name == "up" { // Prometheus's own
				continue
			}
			if there[name] == nil {
				t.Errorf("%s: there is no %s", a.where, name)
			}
			for _, label := range labels {
				if !there[name][label] && label != "job" {
					t.Errorf("%s: %s has no label %s", a.where, name, label)
				}
			}
			for _, value := range e.values[name] {
				if value != "pelton" && !strings.Contains(documented, "`"+value+"`") {
					t.Errorf("%s: docs/metrics.md knows no %s of %s", a.where, value, name)
				}
			}
			maps.Copy(has, there[name])
		}
		for _, label := range e.by {
			if !has[label] {
				t.Errorf("%s: groups by %s, which nothing in it has", a.where, label)
			}
		}
		for _, label := range a.labels {
			if !has[label] || strings.Contains(a.expr, "sum") && !slices.Contains(e.by, label) {
				t.Errorf("%s: names a label %s, which its result has not", a.where, label)
			}
		}
	}
	for name := range series {
		if !shown[name] && name != "pelton_partitions_ahead" { // pelton_partitions_left_seconds says it better
			t.Errorf("neither the dashboard nor an alert shows %s", name)
		}
	}
}

func askedByAlerts(t *testing.T) (all []asked) {
	t.Helper()
	for _, r := range readRules(t) {
		a := asked{where: r.Alert, expr: r.Expr}
		for _, text := range r.Annotations {
			for _, m := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(text, -1) {
				a.labels = append(a.labels, m[1])
			}
		}
		all = append(all, a)
	}
	return all
}

// panel is one of the dashboard.
type panel struct {
	ID          int
	Title, Type string
	Datasource  struct{ Type, UID string }
	GridPos     struct{ H, W, X, Y int }
	FieldConfig struct {
		Defaults struct{ Unit, NoValue string }
	}
	Targets []struct{ Expr, LegendFormat, RefID string }
	Panels  []panel
}

type dashboard struct {
	Title, UID string
	Panels     []panel
	Templating struct {
		List []struct {
			Name, Type string
			Query      any
		}
	}
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	if err := json.Unmarshal(readFile(t, "../deploy/grafana/dashboards/pelton.json"), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func askedByDashboard(t *testing.T) (all []asked) {
	t.Helper()
	d := readDashboard(t)
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			a := asked{where: "panel " + p.Title, expr: target.Expr}
			for _, m := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(target.LegendFormat, -1) {
				a.labels = append(a.labels, m[1])
			}
			all = append(all, a)
		}
	}
	for _, v := range d.Templating.List {
		if query, ok := v.Query.(map[string]any); ok {
			m := regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`).FindStringSubmatch(query["query"].(string))
			if m == nil {
				t.Fatalf("variable %s asks for %v", v.Name, query)
			}
			all = append(all, asked{where: "variable " + v.Name, expr: m[1], labels: m[2:]})
		}
	}
	return all
}

// The dashboard can be drawn: every panel has a place of its own, a source, a unit and something to show.
func TestDashboard(t *testing.T) {
	t.Parallel()
	d := readDashboard(t)
	variables := map[string]bool{"__rate_interval": true}
	for _, v := range d.Templating.List {
		variables[v.Name] = true
		if v.Name == "datasource" && (v.Type != "datasource" || v.Query != "prometheus") {
			t.Errorf("the source is a %s of %v", v.Type, v.Query)
		}
	}
	if !variables["datasource"] || !variables["queue"] {
		t.Errorf("there are only the variables %v", variables)
	}
	ids, titles := map[int]bool{}, map[string]bool{}
	rows := []string{}
	for i, p := range d.Panels {
		if p.ID == 0 || ids[p.ID] {
			t.Errorf("panel %q has the number %d of another one", p.Title, p.ID)
		}
		ids[p.ID] = true
		g := p.GridPos
		if g.X < 0 || g.Y < 0 || g.W < 1 || g.H < 1 || g.X+g.W > 24 {
			t.Errorf("panel %q lies outside the grid: %+v", p.Title, g)
		}
		for _, other := range d.Panels[:i] {
			o := other.GridPos
			if g.X < o.X+o.W && o.X < g.X+g.W && g.Y < o.Y+o.H && o.Y < g.Y+g.H {
				t.Errorf("panel %q lies over %q", p.Title, other.Title)
			}
		}
		if p.Type == "row" {
			rows = append(rows, p.Title)
			if len(p.Panels) > 0 {
				t.Errorf("row %q is folded, and its panels are not looked at here", p.Title)
			}
			continue
		}
		key := rows[len(rows)-1] + ": " + p.Title
		if p.Title == "" || titles[key] {
			t.Errorf("panel %q is there twice", key)
		}
		titles[key] = true
		if p.Datasource.Type != "prometheus" || p.Datasource.UID != "${datasource}" {
			t.Errorf("panel %q asks %+v", p.Title, p.Datasource)
		}
		if p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0 {
			t.Errorf("panel %q has no unit, or nothing to show", p.Title)
		}
		refs := map[string]bool{}
		for _, target := range p.Targets {
			if target.RefID == "" || refs[target.RefID] {
				t.Errorf("panel %q: two targets are %q", p.Title, target.RefID)
			}
			refs[target.RefID] = true
			for _, m := range regexp.MustCompile(`\$(\w+)`).FindAllStringSubmatch(target.Expr, -1) {
				if !variables[m[1]] {
					t.Errorf("panel %q: there is no variable %s", p.Title, m[1])
				}
			}
		}
	}
	if want := []string{"Overview", "Queues", "Executors", "Flows", "Schedules", "Database", "Logs"}; !slices.Equal(rows, want) {
		t.Errorf("the rows are %q, want %q", rows, want)
	}
}

// Prometheus understands what the dashboard asks: its variables stand for values of theirs.
func TestDashboardIsPromQL(t *testing.T) {
	t.Parallel()
	type record struct {
		Record string `yaml:"record"`
		Expr   string `yaml:"expr"`
	}
	var records []record
	for _, a := range askedByDashboard(t) {
		expr := strings.NewReplacer("$__rate_interval", "1m", "$queue", ".*", "$project", ".*").Replace(a.expr)
		records = append(records, record{"a", expr})
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": records}}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "rules.yml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "deploy", "check", "rules", "--lint=none", path)
}

// The panels of faults show 0 where all is well and the fault where there is one, and say that it is not known where it is not.
func TestDashboardTellsZeroFromUnknown(t *testing.T) {
	t.Parallel()
	type sample struct {
		Labels string  `yaml:"labels"`
		Value  float64 `yaml:"value"`
	}
	type question struct {
		Expr     string   `yaml:"expr"`
		EvalTime string   `yaml:"eval_time"`
		Samples  []sample `yaml:"exp_samples"`
	}
	type series struct {
		Series string `yaml:"series"`
		Values string `yaml:"values"`
	}
	type test struct {
		Interval  string     `yaml:"interval"`
		Series    []series   `yaml:"input_series"`
		Questions []question `yaml:"promql_expr_test"`
	}
	exprs := map[string]string{}
	for _, p := range readDashboard(t).Panels {
		if p.Title == "Must be 0" || p.Title == "Failing runs" {
			exprs[p.Title] = strings.NewReplacer("$__rate_interval", "5m", "$queue", ".*").Replace(p.Targets[0].Expr)
			if p.FieldConfig.Defaults.NoValue != "not known" {
				t.Errorf("panel %s says %q where nothing is known", p.Title, p.FieldConfig.Defaults.NoValue)
			}
		}
	}
	up, down, lost, none := series{"pelton_up", "1x9"}, series{"pelton_up", "0x9"}, series{"pelton_jobs_lost", "2x9"}, series{"pelton_jobs_lost", "0x9"}
	below := series{`pelton_rows_below_mark_total{table="job_ready"}`, "0x9"}
	done, failed := series{`pelton_runs_finished_total{queue="q",outcome="completed"}`, "0+3x9"}, series{`pelton_runs_finished_total{queue="q",outcome="errored"}`, "0+1x9"}
	idle := series{`pelton_runs_finished_total{queue="q",outcome="completed"}`, "7x9"}
	var tests []test
	for _, c := range []struct {
		panel string
		given []series
		want  []sample
	}{
		{"Must be 0", []series{up, none, below}, []sample{{"{}", 0}}},
		{"Must be 0", []series{up, lost, below}, []sample{{"{}", 2}}},
		{"Must be 0", []series{up, below}, nil}, // lost jobs are not counted yet
		{"Must be 0", []series{down, below}, []sample{{"{}", 1}}},
		{"Must be 0", nil, nil},
		{"Failing runs", []series{done, failed}, []sample{{"{}", .25}}},
		{"Failing runs", []series{done}, []sample{{"{}", 0}}},
		{"Failing runs", []series{idle}, nil},
		{"Failing runs", nil, nil},
	} {
		tests = append(tests, test{"1m", c.given, []question{{exprs[c.panel], "9m", c.want}}})
	}
	text, err := yaml.Marshal(map[string]any{"evaluation_interval": "1m", "rule_files": []string{}, "tests": tests})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "tests.yml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "deploy", "test", "rules", path)
}

package main

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"
)

// root is the top of the repository.
const root = "../.."

func compose(t *testing.T) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{filepath.Join(root, "docker-compose.yml")}, cli.WithWorkingDirectory(root))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return project
}

// What docker-compose.yml names is there: files, services, and commands and flags of this program.
func TestComposeFile(t *testing.T) {
	t.Parallel()
	project := compose(t)
	for _, name := range []string{"postgres", "migrate", "server", "worker", "prometheus", "grafana"} {
		if _, ok := project.Services[name]; !ok {
			t.Errorf("there is no service %q", name)
		}
	}
	if jaeger := project.DisabledServices["jaeger"]; !slices.Equal(jaeger.Profiles, []string{"traces"}) {
		t.Errorf("jaeger is %+v", jaeger)
	}
	if project, err := project.WithProfiles([]string{"traces"}); err != nil {
		t.Error(err)
	} else {
		checkPorts(t, project.Services["jaeger"])
	}
	for name, service := range project.Services {
		checkFiles(t, service)
		checkPorts(t, service)
		if service.Build != nil {
			checkCommand(t, service)
			checkDatabase(t, service, project)
			checkKey(t, service, project)
		} else if service.Image == "" {
			t.Errorf("service %q has no image", name)
		}
	}
}

// checkFiles sees that what is mounted and built from is there.
func checkFiles(t *testing.T, service types.ServiceConfig) {
	t.Helper()
	for _, v := range service.Volumes {
		if v.Type == types.VolumeTypeBind {
			if _, err := os.Stat(v.Source); err != nil {
				t.Errorf("service %q mounts %v", service.Name, err)
			}
		}
	}
	if service.Build != nil {
		if _, err := os.Stat(filepath.Join(service.Build.Context, service.Build.Dockerfile)); err != nil {
			t.Errorf("service %q is built from %v", service.Name, err)
		}
	}
}

// checkPorts sees that no port is open to other machines.
func checkPorts(t *testing.T, service types.ServiceConfig) {
	t.Helper()
	for _, p := range service.Ports {
		if !net.ParseIP(p.HostIP).IsLoopback() {
			t.Errorf("service %q publishes port %d on %q", service.Name, p.Target, p.HostIP)
		}
	}
}

// checkCommand sees that this program takes the command line, and serves on the ports that are named.
func checkCommand(t *testing.T, service types.ServiceConfig) {
	t.Helper()
	cmd, err := commandLine(service.Command)
	if err != nil {
		t.Errorf("service %q: %v", service.Name, err)
		return
	}
	port := listenPort(cmd)
	for _, p := range service.Ports {
		if strconv.Itoa(int(p.Target)) != port {
			t.Errorf("service %q publishes port %d, and listens on %q", service.Name, p.Target, port)
		}
	}
	for _, p := range service.Expose {
		if p != port {
			t.Errorf("service %q exposes port %s, and listens on %q", service.Name, p, port)
		}
	}
	if service.HealthCheck != nil {
		check := strings.Join(service.HealthCheck.Test, " ")
		if !strings.HasSuffix(check, "http://127.0.0.1:"+port+"/readyz") {
			t.Errorf("service %q is checked by %q, and listens on %q", service.Name, check, port)
		}
	}
}

// commandLine parses a command line of this program without running it.
func commandLine(args []string) (*cobra.Command, error) {
	a := &app{env: func(string) string { return "" }}
	cmd, rest, err := a.root().Find(args)
	if err != nil {
		return nil, err
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return nil, err
	}
	if !cmd.HasParent() || isGroup(cmd) {
		return nil, fmt.Errorf("%q is no command of pelton", args)
	}
	if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
		return nil, err
	}
	if queues := cmd.Flags().Lookup("queues"); queues != nil {
		if _, err := parseQueues(queues.Value.String()); err != nil {
			return nil, err
		}
	}
	host, _, err := net.SplitHostPort(flag(cmd, "listen"))
	if ip := net.ParseIP(host); err == nil && ip != nil && !ip.IsLoopback() && flag(cmd, "insecure-listen") != "true" && flag(cmd, "tls-cert") == "" {
		return nil, fmt.Errorf("%q listens on %s without TLS and without --insecure-listen", args, host)
	}
	return cmd, nil
}

// isGroup tells whether a command does nothing itself. schedule backfill does, and has an example of it.
func isGroup(cmd *cobra.Command) bool { return cmd.HasSubCommands() && !cmd.HasExample() }

func flag(cmd *cobra.Command, name string) string {
	if f := cmd.Flags().Lookup(name); f != nil {
		return f.Value.String()
	}
	return ""
}

// listenPort is where a command serves.
func listenPort(cmd *cobra.Command) string {
	_, port, err := net.SplitHostPort(flag(cmd, "listen"))
	if err != nil {
		return ""
	}
	return port
}

// checkDatabase sees that a service's database is the one that the service postgres makes.
func checkDatabase(t *testing.T, service types.ServiceConfig, project *types.Project) {
	t.Helper()
	address, ok := service.Environment["DATABASE_URL"]
	if !ok || address == nil {
		t.Errorf("service %q has no DATABASE_URL", service.Name)
		return
	}
	u, err := url.Parse(*address)
	if err != nil {
		t.Errorf("service %q: %v", service.Name, err)
		return
	}
	server := project.Services[u.Hostname()]
	password, _ := u.User.Password()
	for variable, got := range map[string]string{
		"POSTGRES_USER": u.User.Username(), "POSTGRES_PASSWORD": password, "POSTGRES_DB": strings.TrimPrefix(u.Path, "/"),
	} {
		if want := server.Environment[variable]; want == nil || *want != got {
			t.Errorf("service %q uses %q, which is not %s of service %q", service.Name, got, variable, u.Hostname())
		}
	}
}

// checkKey sees that a service that serves or works has the key of secrets, which another one has made before, in a volume that is its user's.
func checkKey(t *testing.T, service types.ServiceConfig, project *types.Project) {
	t.Helper()
	if len(service.Command) > 1 && service.Command[1] == "key" || service.Command[0] == "migrate" {
		return
	}
	file := service.Environment["PELTON_SECRET_KEY_FILE"]
	if file == nil {
		t.Errorf("service %q has no PELTON_SECRET_KEY_FILE", service.Name)
		return
	}
	maker := project.Services["key"]
	if want := []string{"secret", "key", "--if-missing", *file}; !slices.Equal(maker.Command, want) {
		t.Errorf("service key runs %q, want %q, as service %q reads it", maker.Command, want, service.Name)
	}
	if service.DependsOn["key"].Condition != types.ServiceConditionCompletedSuccessfully {
		t.Errorf("service %q does not wait for the key", service.Name)
	}
	mount := func(s types.ServiceConfig) (found types.ServiceVolumeConfig) {
		for _, v := range s.Volumes {
			if v.Target == filepath.Dir(*file) && v.Type == types.VolumeTypeVolume {
				found = v
			}
		}
		return found
	}
	made, read := mount(maker), mount(service)
	if made.Source == "" || made.ReadOnly || made.Source != read.Source || !read.ReadOnly {
		t.Errorf("service key writes to %+v, service %q reads %+v", made, service.Name, read)
	}
	if _, declared := project.Volumes[made.Source]; !declared {
		t.Errorf("there is no volume %q", made.Source)
	}
	image, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	// A new volume has the owner that the directory has in the image.
	if !regexp.MustCompile(`install -d -m 700 -o 10001 -g 10001 .*` + made.Target + `\n(.*\n)*USER 10001:10001\n`).Match(image) {
		t.Errorf("the image has no directory %s of its user's", made.Target)
	}
}

// Prometheus scrapes services that exist, where they listen, and Grafana asks Prometheus.
func TestPrometheusAndGrafanaFindTheirSources(t *testing.T) {
	t.Parallel()
	project := compose(t)
	config := yamlFile(t, "deploy/prometheus.yml")
	scrape := config["scrape_configs"].([]any)[0].(map[string]any)
	if scrape["metrics_path"] != "/metrics" {
		t.Errorf("metrics are looked for at %v", scrape["metrics_path"])
	}
	found := scrape["dns_sd_configs"].([]any)[0].(map[string]any)
	var names []string
	for _, name := range found["names"].([]any) {
		names = append(names, fmt.Sprint(name))
		cmd, err := commandLine(project.Services[fmt.Sprint(name)].Command)
		if err != nil {
			t.Fatalf("service %q: %v", name, err)
		}
		if port := listenPort(cmd); port != fmt.Sprint(found["port"]) {
			t.Errorf("service %q is scraped on port %v, and listens on %s", name, found["port"], port)
		}
	}
	if !slices.Contains(names, "server") || !slices.Contains(names, "worker") {
		t.Errorf("only %q are scraped", names)
	}
	for _, rules := range config["rule_files"].([]any) {
		if !slices.ContainsFunc(project.Services["prometheus"].Volumes, func(v types.ServiceVolumeConfig) bool {
			_, err := os.Stat(filepath.Join(v.Source, filepath.Base(fmt.Sprint(rules))))
			return err == nil && v.Target == filepath.Dir(filepath.Join("/etc/prometheus", fmt.Sprint(rules)))
		}) {
			t.Errorf("rules are looked for in %v, where they are not mounted", rules)
		}
	}
	sources := yamlFile(t, "deploy/grafana/provisioning/datasources/prometheus.yml")["datasources"].([]any)
	u, err := url.Parse(fmt.Sprint(sources[0].(map[string]any)["url"]))
	if err != nil {
		t.Fatal(err)
	}
	ports := project.Services[u.Hostname()].Ports
	if len(ports) != 1 || strconv.Itoa(int(ports[0].Target)) != u.Port() {
		t.Errorf("Grafana asks %s, whose ports are %v", u, ports)
	}
	providers := yamlFile(t, "deploy/grafana/provisioning/dashboards/pelton.yml")["providers"].([]any)
	path := providers[0].(map[string]any)["options"].(map[string]any)["path"]
	if !slices.ContainsFunc(project.Services["grafana"].Volumes, func(v types.ServiceVolumeConfig) bool {
		return v.Target == path && strings.HasSuffix(v.Source, filepath.Join("deploy", "grafana", "dashboards"))
	}) {
		t.Errorf("dashboards are looked for in %v, where they are not mounted", path)
	}
}

func yamlFile(t *testing.T, path string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	var parsed map[string]any
	if err := yaml.Unmarshal(text, &parsed); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return parsed
}

// docs/runbook.md and the alerts call commands that there are.
func TestRunbook(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "docs/runbook.md"))
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile("(?m)^\\$ pelton (.*)$|`pelton ([^`]*)`").FindAllSubmatch(text, -1)
	if len(lines) < 20 {
		t.Fatalf("only %d commands", len(lines))
	}
	for _, line := range lines {
		if _, err := commandLine(strings.Fields(string(line[1]) + string(line[2]))); err != nil {
			t.Errorf("pelton %s%s: %v", line[1], line[2], err)
		}
	}
	rules, err := os.ReadFile(filepath.Join(root, "deploy/prometheus/rules.yml"))
	if err != nil {
		t.Fatal(err)
	}
	called := regexp.MustCompile(`pelton ([a-z]+ [a-z]+)`).FindAllSubmatch(regexp.MustCompile(`\(pelton server\)`).ReplaceAll(rules, nil), -1)
	if len(called) < 8 {
		t.Fatalf("the rules call only %d commands", len(called))
	}
	for _, words := range called {
		cmd, _, err := (&app{}).root().Find(strings.Fields(string(words[1])))
		if err != nil || isGroup(cmd) {
			t.Errorf("the rules call pelton %s: %v", words[1], err)
		}
	}
}

// The image is built from what is there, with a Go of this module, and runs the program as an ordinary user.
func TestDockerfile(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	module, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(module)
	built := regexp.MustCompile(`(?m)^FROM golang:(\d+\.\d+)`).FindSubmatch(text)
	if want == nil || built == nil || string(want[1]) != string(built[1]) {
		t.Errorf("built with Go %q, the module is of Go %q", built, want)
	}
	var output, installed, entry, user string
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case words[0] == "COPY" && words[1] == "--from=build":
			if words[2] != output {
				t.Errorf("%s is copied, %s is built", words[2], output)
			}
			installed = words[3]
		case words[0] == "COPY":
			for _, source := range words[1 : len(words)-1] {
				if _, err := os.Stat(filepath.Join(root, source)); err != nil {
					t.Error(err)
				}
			}
		case words[0] == "RUN" && slices.Contains(words, "build"):
			if !slices.Contains(words, "CGO_ENABLED=0") {
				t.Error("the binary is not static")
			}
			if _, err := os.Stat(filepath.Join(root, words[len(words)-1])); err != nil {
				t.Error(err)
			}
			output = words[slices.Index(words, "-o")+1]
		case words[0] == "USER":
			user = words[1]
		case words[0] == "ENTRYPOINT":
			entry = words[1]
		}
	}
	if installed == "" || entry != fmt.Sprintf("[%q]", installed) {
		t.Errorf("the entry point is %s, the program %s", entry, installed)
	}
	if user == "" || strings.HasPrefix(user, "0") || strings.HasPrefix(user, "root") {
		t.Errorf("it runs as %q", user)
	}
}

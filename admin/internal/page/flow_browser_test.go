package page_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/peltonq/pelton/admin/internal/page/pagetest"
	"github.com/peltonq/pelton/jobs/flow"
	"github.com/peltonq/pelton/jobs/flow/flowtest"
	"github.com/peltonq/pelton/jobs/joblog"
)

const workedFlow = `
config: {day: 2026-01-31}
nodes:
  - {name: extract, type: test}
  - {name: load, type: test, dependsOn: [extract], config: {of: "${day}"}}
  - {name: report, type: test, dependsOn: [load]}
`

// colour is the status that the picture shows of a node.
func colour(node int) string {
	return fmt.Sprintf(`(document.querySelector("figure.graph #n%d")?.dataset.status ?? "")`, node)
}

// A person uploads a project, runs it with a parameter, watches it turn green, follows a log, retries what failed; a viewer looks on.
func TestFlowInABrowser(t *testing.T) {
	t.Parallel()
	h := newHouse(t, pagetest.Options{Passwords: true})
	goOn, finish := make(chan struct{}), make(chan struct{})
	failing := make(chan bool, 2)
	failing <- true
	failing <- false
	printed := func(ctx context.Context, text string) error {
		_, err := joblog.FromContext(ctx).Stream(joblog.Stdout).Write([]byte(text))
		return err
	}
	h.do("extract", func(ctx context.Context) (map[string]string, error) {
		err := printed(ctx, "the first line\n")
		select {
		case <-goOn:
		case <-ctx.Done():
		}
		err = errors.Join(err, printed(ctx, "the second line\n"))
		select {
		case <-finish:
		case <-ctx.Done():
		}
		return map[string]string{"rows": "42"}, err
	})
	h.do("load", func(context.Context) (map[string]string, error) {
		if <-failing {
			return nil, errors.New("the table is locked")
		}
		return nil, nil //nolint:nilnil // no outputs
	})
	b := h.Browser("admin")
	b.Go("/flows")
	b.Fill(`input[name="project"]`, "shop")
	zip := filepath.Join(t.TempDir(), "shop.zip")
	if err := os.WriteFile(zip, zipped(t, "p.project", projectFile, "nightly.flow", workedFlow), 0o600); err != nil {
		t.Fatal(err)
	}
	b.Do(chromedp.SetUploadFiles(chromedp.CSS(`input[name="zip"]`), []string{zip}))
	b.ClickText("Upload")
	b.WaitFor(".flash", "Stored version 1 of shop")
	b.ClickText("nightly")
	b.WaitUntil(`document.querySelectorAll("figure.graph g.node").length === 3`)
	b.ClickText("Run it")
	b.Fill(`input[name="p:day"]`, "2026-02-01")
	b.ClickText("Start the run")
	b.WaitFor(".flash", "Started run 1.")
	b.WaitUntil(colour(0) + ` === "RUNNING"`)
	if got := b.Eval(colour(2)); got != "READY" {
		t.Errorf("the last node is %s", got)
	}
	// The log of a node, line by line.
	b.Eval(`document.querySelector("figure.graph #n0 rect").dispatchEvent(new MouseEvent("click", {bubbles: true}))`)
	b.WaitFor("h1", "extract")
	b.WaitFor(".log", "the first line")
	close(goOn)
	b.WaitFor(".log", "the second line")
	// Back at the picture, which changes by itself.
	b.Go("/runs/1")
	b.WaitUntil(colour(0) + ` === "RUNNING"`)
	b.Eval(`window.notReloaded = true`)
	close(finish)
	b.WaitUntil(colour(0) + ` === "SUCCEEDED" && ` + colour(1) + ` === "FAILED" && ` + colour(2) + ` === "CANCELLED"`)
	b.WaitFor("#head", "the table is locked")
	b.ClickText("Retry what failed")
	b.WaitUntil(colour(0) + ` === "SUCCEEDED" && ` + colour(1) + ` === "SUCCEEDED" && ` + colour(2) + ` === "SUCCEEDED"`)
	b.WaitFor("#head", "SUCCEEDED")
	// A node is found by its name, and the keyboard moves the picture.
	b.Fill(`[data-find]`, "load")
	b.Eval(`document.querySelector("[data-find]").dispatchEvent(new Event("input"))`)
	b.WaitUntil(`document.querySelector("figure.graph .found")?.id === "n1"`)
	before := b.Eval(`document.querySelector("figure.graph svg").getAttribute("viewBox")`)
	b.Eval(`document.querySelector("figure.graph .view").dispatchEvent(new KeyboardEvent("keydown", {key: "+"}))`)
	if after := b.Eval(`document.querySelector("figure.graph svg").getAttribute("viewBox")`); after == before {
		t.Errorf("the picture is as it was: %s", after)
	}
	// A viewer sees it green, and no buttons.
	viewer := h.Browser("viewer")
	viewer.Go("/runs/1")
	viewer.WaitUntil(colour(2) + ` === "SUCCEEDED"`)
	if got := viewer.Eval(`document.querySelectorAll("main form[method=post], main a.button").length`); got != "0" {
		t.Errorf("a viewer is offered %s things to do", got)
	}
	if got := viewer.Eval(`(fetch("/runs/1/retry", {method: "POST"}).then((r) => { window.answer = r.status; }), "")`); got != "" {
		t.Error(got)
	}
	viewer.WaitUntil(`window.answer === 403`)
}

// What nobody touches stays as the flow says, and what a run was started with is offered again as it was: also what has several lines.
func TestRunFormKeepsLines(t *testing.T) {
	t.Parallel()
	h := newHouse(t, pagetest.Options{Passwords: true})
	f := flow.New("f").Node("load", "noop", map[string]string{"of": "x"})
	for name, value := range map[string]string{"query": "select 1\nfrom t\n", "windows": "a\r\nb\rc", "blank": "\n\n x ", "one": " a \t b ", "marks": "\u202eb\u200f\x01", "command.1": "first\nsecond"} {
		f.Param(name, value)
	}
	h.push(t, "etl", f)
	options := func(run int64) (got flow.Options) {
		t.Helper()
		var text []byte
		if err := h.Pool.QueryRow(t.Context(), "SELECT options FROM pelton.flow_run WHERE id = $1", run).Scan(&text); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	b := h.Browser("operator")
	b.Go("/flows/etl/f")
	b.ClickText("Run it")
	b.Enter(`[name="p:one"]`)
	b.WaitFor(".flash", "Nothing was started.")
	b.ClickText("Start the run")
	b.WaitFor(".flash", "Started run 1.")
	if got := options(1); !reflect.DeepEqual(got, flow.Options{}) {
		t.Errorf("started without a change, with the options %+v", got)
	}
	want := flow.Options{
		Params:     map[string]string{"query": "select 2\n", "one": "", "further": "x=1\ny=2\n", "spaces": " a "},
		NodeParams: map[string]map[string]string{"load": {"of": "\na\n\nb:c=d", "to": "y ", "marks": "\u200f\nb"}},
	}
	for i := range 5 {
		want.SLAs = append(want.SLAs, flow.SLA{Within: flow.Duration(time.Duration(i+1) * time.Hour), Alert: true})
	}
	like := h.start(t, "etl", "f", want)
	b.Go("/flows/etl/f?like=" + strconv.FormatInt(like, 10))
	b.ClickText("Start the run")
	b.WaitFor(".flash", "Started run 3.")
	if got := options(3); !reflect.DeepEqual(got, want) {
		t.Errorf("started with %+v, want %+v", got, want)
	}
}

// The pages of flows fit on a wide and on a narrow screen. With PELTON_SCREENSHOTS=DIR, pictures are written there.
func TestFlowPagesFit(t *testing.T) {
	t.Parallel()
	h := newHouse(t, pagetest.Options{Passwords: true})
	night := flow.New("nightly").Param("day", "2026-01-31").Param("tables", "orders,customers").MaxParallel(4)
	night.Job("extract", flowtest.Args{"day": "${day}"})
	for _, table := range []string{"orders", "customers", "products", "returns", "stock", "prices"} {
		night.Job("load_"+table, flowtest.Args{"of": "${" + "tables}"}).After("extract")
	}
	night.Flow("checks", flow.New("checks").Noop("begin").Job("totals", flowtest.Args{}).After("begin").Job("duplicates", flowtest.Args{}).After("begin").Noop("end").After("totals", "duplicates")).
		After("load_orders", "load_customers", "load_products")
	night.Job("report_with_quite_a_long_name", flowtest.Args{}).After("checks", "load_returns", "load_stock", "load_prices")
	night.Job("tell", flowtest.Args{}).After("report_with_quite_a_long_name").When("all_done")
	fan := flow.New("fan").Noop("first")
	var all []string
	for i := range 300 {
		fan.Noop("part-" + strconv.Itoa(i)).After("first")
		all = append(all, "part-"+strconv.Itoa(i))
	}
	fan.Noop("last").After(all...)
	h.push(t, "etl", night, fan, flow.New("hourly").Noop("a"))
	h.push(t, "warehouse", flow.New("sync").Noop("a"))
	h.do("checks:duplicates", func(ctx context.Context) (map[string]string, error) {
		_, _ = joblog.FromContext(ctx).Stream(joblog.Stderr).Write([]byte("found 17 duplicates of orders\n"))
		return nil, errors.New("17 duplicates in orders: see the log for their numbers")
	})
	h.do("extract", func(ctx context.Context) (map[string]string, error) {
		_, _ = joblog.FromContext(ctx).Stream(joblog.Stdout).Write([]byte("reading\nread 12,345 rows\n"))
		return map[string]string{"rows": "12345"}, nil
	})
	failed := h.start(t, "etl", "nightly", flow.Options{Params: map[string]string{"day": "2026-02-01"}})
	h.ended(t, failed, "FAILED")
	h.ended(t, h.start(t, "etl", "fan", flow.Options{}), "SUCCEEDED")
	for range 5 {
		h.ended(t, h.start(t, "etl", "nightly", flow.Options{Disabled: []string{"checks"}}), "SUCCEEDED")
	}
	open := h.wait("load_stock")
	defer open()
	live := h.start(t, "etl", "nightly", flow.Options{})
	h.status(t, live, "load_stock", "RUNNING")
	b := h.Browser("admin")
	dir := os.Getenv("PELTON_SCREENSHOTS")
	run := func(id int64, rest string) string { return fmt.Sprintf("/runs/%d%s", id, rest) }
	shots := append(furnishLongestFlow(t, h), []shot{
		{"flows", "/flows"},
		{"project", "/flows/etl"},
		{"flow", "/flows/etl/nightly"},
		{"flow-form", "/flows/etl/nightly?like=" + strconv.FormatInt(failed, 10)},
		{"flow-fan", "/flows/etl/fan?node=3"},
		{"runs", "/runs"},
		{"run-failed", run(failed, "")},
		{"run-live", run(live, "")},
		{"run-gantt", run(failed, "/gantt")},
		{"run-logs", run(failed, "/logs?q=duplicates")},
		{"node-failed", run(failed, "/nodes/10")},
		{"node-log", run(failed, "/nodes/0")},
		{"run-confirm", run(live, "/confirm/kill")},
	}...)
	for _, one := range shots {
		b.Go(one.path)
		for _, width := range []int64{1280, 390} {
			b.View(width, false)
			b.Fits()
			if dir == "" {
				continue
			}
			b.WaitUntil(`!document.querySelector("figure.graph") || document.querySelector("figure.graph svg") !== null`)
			b.Eval(`(dispatchEvent(new Event("resize")), "")`)
			b.Screenshot(dir, one.name+"-"+strconv.FormatInt(width, 10)+"-light")
			b.View(width, true)
			b.Screenshot(dir, one.name+"-"+strconv.FormatInt(width, 10)+"-dark")
		}
	}
}

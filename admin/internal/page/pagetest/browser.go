package pagetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// ChromiumEnv names the variable with the path of a Chromium to test with; without it, one is looked for in PATH.
const ChromiumEnv = "PELTON_TEST_CHROMIUM"

// chromium finds a browser.
func chromium() (string, error) {
	if path := os.Getenv(ChromiumEnv); path != "" {
		return path, nil
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome", "headless_shell"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("no Chromium in PATH: install one (apt-get install chromium), or set " + ChromiumEnv)
}

// Browser is a headless Chromium with one page of a site. Faults of scripts, and what the policy of content forbids, fail the test.
type Browser struct {
	t   testing.TB
	url string
	ctx context.Context //nolint:containedctx // the browser is one

	reading sync.WaitGroup
	faults  []string
}

// Browser starts a browser, which is closed when the test ends; without a user ("") nobody is logged in. The site needs Options.Passwords for users.
func (s *Site) Browser(user string) *Browser {
	s.t.Helper()
	path, err := chromium()
	if err != nil {
		s.t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.WindowSize(1280, 900), chromedp.UserDataDir(s.t.TempDir()), chromedp.WSURLReadTimeout(Patience))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	b := &Browser{t: s.t, url: s.URL, ctx: ctx}
	s.t.Cleanup(func() {
		err := chromedp.Cancel(ctx)
		cancel()
		stop()
		if err != nil {
			s.t.Errorf("close the browser: %v", err)
		}
		b.reading.Wait()
		for _, fault := range b.faults {
			s.t.Errorf("the browser complained: %s", fault)
		}
	})
	if err := chromedp.Do(ctx); err != nil {
		s.t.Fatalf("start %s: %v", path, err)
	}
	messages := chromedp.Console(ctx)
	b.reading.Go(func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			// A page that was refused on purpose is no fault.
			if (m.Type == "error" || m.Type == chromedp.ConsoleException) && !strings.Contains(m.Text, "Failed to load resource") {
				b.faults = append(b.faults, m.Text+" at "+m.URL)
			}
		}
	})
	if user != "" {
		b.Login(user)
	}
	return b
}

// Do does something, within Patience.
func (b *Browser) Do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, Patience)
	defer cancel()
	b.check(chromedp.Do(ctx, actions...))
}

// run is Do for what gives a value.
func run[T any](b *Browser, action chromedp.Action[T]) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, Patience)
	defer cancel()
	value, err := chromedp.Run(ctx, action)
	b.check(err)
	return value
}

func (b *Browser) check(err error) {
	b.t.Helper()
	if err != nil {
		shown, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText`))
		b.t.Fatalf("%v; the browser shows %s", err, shown)
	}
}

// Go opens a page.
func (b *Browser) Go(path string) {
	b.t.Helper()
	b.Do(chromedp.Navigate(b.url + path))
}

// Login logs in by the form.
func (b *Browser) Login(user string) {
	b.t.Helper()
	b.Go("/login")
	b.Fill(`input[name="name"]`, user)
	b.Fill(`input[name="password"]`, Password)
	b.Click(`button.main`)
	b.WaitFor(`.who`, user)
}

// Fill writes into a field, found by a CSS selector, instead of what is there.
func (b *Browser) Fill(selector, value string) {
	b.t.Helper()
	b.Do(chromedp.SetValue(chromedp.CSS(selector), value, chromedp.NodeVisible))
}

// Enter presses the key Enter in what a CSS selector finds first.
func (b *Browser) Enter(selector string) {
	b.t.Helper()
	b.Do(chromedp.SendKeys(chromedp.CSS(selector), "\r", chromedp.NodeVisible))
}

// Click clicks at what a CSS selector finds first.
func (b *Browser) Click(selector string) {
	b.t.Helper()
	b.click(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// click is Do, again where a live part was renewed between finding and clicking.
func (b *Browser) click(action chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, Patience)
	defer cancel()
	err := chromedp.Do(ctx, action)
	for err != nil && ctx.Err() == nil && strings.Contains(err.Error(), "Could not find node") {
		err = chromedp.Do(ctx, action)
	}
	b.check(err)
}

// ClickText clicks at the first button or link with this text.
func (b *Browser) ClickText(text string) {
	b.t.Helper()
	b.click(chromedp.Click(fmt.Sprintf(`//*[self::button or self::a or self::summary][normalize-space()=%q]`, text), chromedp.NodeVisible))
}

// Eval runs a script's expression, and returns its value as text.
func (b *Browser) Eval(expression string) string {
	b.t.Helper()
	return run(b, chromedp.Evaluate[string](`String(`+expression+`)`))
}

// Text is what is shown within the first thing that a CSS selector finds; empty if there is none.
func (b *Browser) Text(selector string) string {
	b.t.Helper()
	return b.Eval(fmt.Sprintf(`document.querySelector(%q)?.innerText ?? ""`, selector))
}

// Path is the path of the page that is shown.
func (b *Browser) Path() string {
	b.t.Helper()
	return b.Eval(`location.pathname + location.search`)
}

// WaitFor waits until a text is shown within the first thing that a CSS selector finds.
func (b *Browser) WaitFor(selector, text string) {
	b.t.Helper()
	b.WaitUntil(fmt.Sprintf(`(document.querySelector(%q)?.innerText ?? "").includes(%q)`, selector, text))
}

// WaitUntil waits until a script's condition is true.
func (b *Browser) WaitUntil(condition string) {
	b.t.Helper()
	b.Do(func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		for {
			there, err := chromedp.Evaluate[bool](condition)(ctx, target)
			if there {
				return chromedp.Void{}, nil
			}
			select {
			case <-ctx.Done():
				return chromedp.Void{}, fmt.Errorf("%s is not true: %w", condition, errors.Join(err, ctx.Err()))
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
}

// View sets the width of the page, and whether it is dark.
func (b *Browser) View(width int64, dark bool) {
	b.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	ctx, cancel := context.WithTimeout(b.ctx, Patience)
	defer cancel()
	_, err := chromedp.Call(ctx, emulation.SetDeviceMetricsOverride,
		emulation.SetDeviceMetricsOverrideParams{Width: width, Height: 900, DeviceScaleFactor: 1, Mobile: width < 600})
	b.check(err)
	_, err = chromedp.Call(ctx, emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	b.check(err)
}

// Script has a script run in every page that is opened from now on, before its own.
func (b *Browser) Script(source string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, Patience)
	defer cancel()
	_, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: source})
	b.check(err)
}

// Finger is where a finger is, in pixels of the window.
type Finger struct{ X, Y float64 }

// Touch puts fingers on the page, has them be in one place after the other, and lifts them.
func (b *Browser) Touch(places ...[]Finger) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, Patience)
	defer cancel()
	_, err := chromedp.Call(ctx, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{Enabled: true, MaxTouchPoints: 2})
	b.check(err)
	kind := input.DispatchTouchEventTypeTouchStart
	for _, fingers := range append(places, nil) {
		points := []*input.TouchPoint{}
		for i, f := range fingers {
			id := float64(i)
			points = append(points, &input.TouchPoint{X: f.X, Y: f.Y, ID: &id})
		}
		if fingers == nil {
			kind = input.DispatchTouchEventTypeTouchEnd
		}
		_, err := chromedp.Call(ctx, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: kind, TouchPoints: points})
		b.check(err)
		kind = input.DispatchTouchEventTypeTouchMove
	}
}

// Fits fails the test if the page must be scrolled sideways.
func (b *Browser) Fits() {
	b.t.Helper()
	wide := b.Eval(`document.documentElement.scrollWidth <= document.documentElement.clientWidth ? "" :
		[document.documentElement.scrollWidth + " px"].concat([...document.querySelectorAll("body *")]
			.filter((e) => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
			.slice(0, 5).map((e) => e.tagName + "." + (e.getAttribute("class") || ""))).join(", ")`)
	if wide != "" {
		b.t.Errorf("%s must be scrolled sideways: %s", b.Path(), wide)
	}
}

// Screenshot writes a PNG of the whole page into a directory.
func (b *Browser) Screenshot(dir, name string) {
	b.t.Helper()
	png := run(b, chromedp.FullScreenshot(100))
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // pictures for everybody
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil { //nolint:gosec // as above
		b.t.Fatal(err)
	}
}

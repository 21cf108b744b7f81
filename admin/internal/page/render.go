package page

import (
	"bytes"
	"crypto/rand"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/internal/quantity"
	"github.com/peltonq/pelton/jobs/command"
)

//go:embed templates/*.html
var templateFiles embed.FS

// pages are the templates by name: each file but layout.html and parts.html is a page, and defines "content".
var pages = parse()

func parse() map[string]*template.Template {
	common := template.Must(template.New("").Funcs(funcs).ParseFS(templateFiles, "templates/layout.html", "templates/parts.html"))
	all := map[string]*template.Template{}
	entries, err := fs.ReadDir(templateFiles, "templates")
	if err != nil {
		panic(err) // embedded
	}
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), ".html")
		if name != "layout" && name != "parts" {
			all[name] = template.Must(template.Must(common.Clone()).ParseFS(templateFiles, "templates/"+e.Name()))
		}
	}
	return all
}

// view is what a template gets: its own data is .Data.
type view struct {
	Title string
	Actor *access.Actor // nil: nobody has logged in
	Path  string        // of the request, with its query
	Nav   []link
	Flash string
	Data  any
}

// May tells whether the reader has a role ("operator") in a project; "" for what belongs to none. For buttons.
func (v view) May(role, project string) (bool, error) {
	wanted, err := access.ParseRole(role)
	return err == nil && v.Actor != nil && v.Actor.May(wanted, project), err
}

// Operator is May for operators of everything.
func (v view) Operator() bool { return v.Actor != nil && v.Actor.May(access.Operator, "") }

// Admin is May for admins of everything.
func (v view) Admin() bool { return v.Actor != nil && v.Actor.May(access.Admin, "") }

// render shows a page: the template of this name with its data.
func (p *Page) render(w http.ResponseWriter, r *http.Request, name, title string, data any) error {
	return p.renderStatus(w, r, http.StatusOK, name, title, data)
}

func (p *Page) renderStatus(w http.ResponseWriter, r *http.Request, status int, name, title string, data any) error {
	a := actor(r.Context())
	v := view{Title: title, Actor: &a, Path: r.URL.RequestURI(), Nav: p.navigation(a, r.URL.Path), Data: data}
	v.Flash = p.flash(w, r)
	return write(w, status, name, v)
}

func write(w http.ResponseWriter, status int, name string, v view) error {
	text, err := execute(name, "layout", v)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(text) // nobody is left to tell
	return nil
}

// execute makes a page, or a part of it.
func execute(name, part string, data any) ([]byte, error) {
	t, ok := pages[name]
	if !ok {
		return nil, fmt.Errorf("no template %q", name)
	}
	var out bytes.Buffer
	if err := t.ExecuteTemplate(&out, part, data); err != nil {
		return nil, fmt.Errorf("template %s: %w", name, err)
	}
	return visiblePage(out.Bytes()), nil
}

// funcs are the functions of all templates.
var funcs = template.FuncMap{
	"asset":  func(name string) string { return assets[name].path },
	"time":   showTime,
	"ago":    showAgo,
	"since":  showSince,
	"dur":    duration,
	"secs":   func(s float64) string { return duration(time.Duration(s * float64(time.Second))) },
	"bytes":  byteCount,
	"count":  count,
	"many":   quantity.Of[int],
	"pretty": pretty,
	"class":  stateClass,
	"join":   strings.Join,
	"short":  short,
	"reason": reason,
	"flow":   flowPath,

	"statuses": nodeStatusNames,
	"dict":     dict,
	"newKey":   rand.Text,
}

// dict makes a map of pairs, to give a template several things.
func dict(pairs ...any) (map[string]any, error) {
	m := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		name, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("dict: %v is no name", pairs[i])
		}
		m[name] = pairs[i+1]
	}
	return m, nil
}

// moment takes a time or a pointer to one; false: there is none.
func moment(v any) (time.Time, bool) {
	switch t := v.(type) {
	case time.Time:
		return t, !t.IsZero()
	case *time.Time:
		if t != nil {
			return *t, !t.IsZero()
		}
	}
	return time.Time{}, false
}

// showTime shows a time in UTC to the second. The script shows the reader's own beside it.
func showTime(v any) template.HTML {
	t, ok := moment(v)
	if !ok {
		return "-"
	}
	t = t.UTC()
	return template.HTML(`<time datetime="` + t.Format(time.RFC3339Nano) + `">` + t.Format("2006-01-02 15:04:05") + `</time>`) //nolint:gosec // digits
}

// showAgo shows how long ago a time was, or how far away it is; the time itself is its title.
func showAgo(v any) template.HTML {
	t, ok := moment(v)
	if !ok {
		return "-"
	}
	text := "just now"
	switch d := time.Since(t); {
	case d >= time.Second:
		text = duration(d) + " ago"
	case d <= -time.Second:
		text = "in " + strings.TrimPrefix(duration(d), "-")
	}
	t = t.UTC()
	return template.HTML(`<time datetime="` + t.Format(time.RFC3339Nano) + `" title="` + t.Format("2006-01-02 15:04:05") + ` UTC">` + text + `</time>`) //nolint:gosec // digits
}

// showSince shows how long ago a time was without saying so; the time itself is its title.
func showSince(v any) template.HTML {
	return template.HTML(strings.Replace(string(showAgo(v)), " ago<", "<", 1)) //nolint:gosec // showAgo's
}

// duration shows the two largest units.
func duration(d time.Duration) string {
	switch {
	case d == math.MinInt64:
		return "-" + duration(math.MaxInt64)
	case d < 0:
		return "-" + duration(-d)
	case d == 0:
		return "0 s"
	case d < time.Millisecond:
		return strconv.FormatInt(d.Microseconds(), 10) + " us"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	case d < time.Minute:
		return strconv.FormatInt(int64(d.Seconds()), 10) + " s"
	case d < time.Hour:
		return units(int(d.Minutes()), "min", int(d.Seconds())%60, "s")
	case d < 24*time.Hour:
		return units(int(d.Hours()), "h", int(d.Minutes())%60, "min")
	}
	return units(int(d.Hours())/24, "d", int(d.Hours())%24, "h")
}

func units(large int, name string, small int, smallName string) string {
	if small == 0 {
		return fmt.Sprintf("%d %s", large, name)
	}
	return fmt.Sprintf("%d %s %d %s", large, name, small, smallName)
}

// byteCount shows a number of bytes.
func byteCount(n int64) string {
	const unit = 1024
	if n < unit {
		return strconv.FormatInt(n, 10) + " B"
	}
	value, i := float64(n)/unit, 0
	for value >= unit && i < 4 {
		value, i = value/unit, i+1
	}
	return strconv.FormatFloat(value, 'f', 1, 64) + " " + []string{"KiB", "MiB", "GiB", "TiB", "PiB"}[i]
}

// count shows a number with its thousands apart.
func count(v any) string {
	var text string
	switch n := v.(type) {
	case float64:
		text = strconv.FormatFloat(n, 'f', 0, 64)
	default:
		text = fmt.Sprint(n)
	}
	sign := ""
	if strings.HasPrefix(text, "-") {
		sign, text = "-", text[1:]
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return sign + text
}

// pretty indents JSON; what is none is shown as it is.
func pretty(v any) string {
	var raw []byte
	switch j := v.(type) {
	case json.RawMessage:
		raw = j
	case []byte:
		raw = j
	case string:
		raw = []byte(j)
	default:
		made, err := json.Marshal(v)
		if err != nil {
			return err.Error()
		}
		raw = made
	}
	var out bytes.Buffer
	if len(raw) == 0 || spaces(raw) > prettySpaces || json.Indent(&out, raw, "", "  ") != nil {
		return string(raw)
	}
	return out.String()
}

// prettySpaces bounds what indenting JSON may add: that grows with the square of how deep it is nested.
const prettySpaces = 1 << 20

// spaces is about how many bytes indenting JSON adds; brackets and commas in texts may be counted too.
func spaces(raw []byte) (added int) {
	depth := 0
	for _, c := range raw {
		switch c {
		case '[', '{':
			depth++
			added += 2 * depth
		case ']', '}':
			depth--
			added += 2 * depth
		case ',':
			added += 2 * depth
		}
	}
	return added
}

// short cuts a text to n characters, and to its first line.
func short(n int, text string) string {
	text, _, more := strings.Cut(strings.TrimSpace(text), "\n")
	runes := []rune(text)
	if len(runes) > n {
		return string(runes[:n-1]) + "\u2026"
	}
	if more {
		return text + " \u2026"
	}
	return text
}

// reason cuts an error to n characters, and begins with what is wrong: of a program's that is the last line it wrote to stderr, which the error has at its end.
func reason(n int, text string) string {
	how, lines, found := strings.Cut(text, command.LastLinesFollow)
	lines = strings.TrimSpace(lines)
	if !found || lines == "" {
		return short(n, text)
	}
	last := short(n, lines[strings.LastIndexByte(lines, '\n')+1:])
	if rest := n - utf8.RuneCountInString(last) - 3; rest >= 20 {
		return last + " (" + short(rest, how) + ")"
	}
	return last
}

// stateClass is the colour of a state: of a job, an outcome, a status of flows, ticks.
func stateClass(state string) string {
	switch strings.ToLower(state) {
	case "completed", "succeeded", "fired", "alive", "active", "ok", "on", "open":
		return "good"
	case "running", "preparing":
		return "runs"
	case "available", "queued", "ready", "pending", "scheduled", "waiting", "ahead", "snoozed", "returned", "retried", "moved":
		return "waits"
	case "retryable", "errored", "paused", "failed_finishing", "killing", "failed_succeeded", "lost", "late", "parked":
		return "warns"
	case "discarded", "failed", "killed", "dead", "missed", "refused", "firing":
		return "bad"
	}
	return "off"
}

package page_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/peltonq/pelton/admin/internal/page"
	"github.com/peltonq/pelton/admin/internal/page/pagetest"
	"github.com/peltonq/pelton/internal/pgtest"
)

var wildcard = regexp.MustCompile(`\{[^}]*\}`)

// address is an address that a route answers.
func address(pattern string) (method, path string) {
	method, path, _ = strings.Cut(pattern, " ")
	return method, wildcard.ReplaceAllStringFunc(path, func(name string) string {
		if name == "{$}" {
			return ""
		}
		return "1"
	})
}

// open are the routes that need no role: what is one's own, and what leads on.
var open = map[string]bool{"GET /": true, "GET /live": true}

// Every route refuses who has no role, who has not logged in, and, if it changes something, viewers and what another page sends.
func TestEveryRouteIsGuarded(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{})
	nobody, stranger, viewer, operator := s.As("nobody"), s.As(""), s.As("viewer"), s.As("operator")
	if len(page.Patterns()) < 5 {
		t.Fatal("hardly any routes")
	}
	for _, pattern := range page.Patterns() {
		method, path := address(pattern)
		if a := stranger.Do(method, path, "", "Sec-Fetch-Site", "same-origin"); method == http.MethodGet &&
			(a.Status != http.StatusSeeOther || !strings.HasPrefix(a.Header.Get("Location"), "/login?next=")) ||
			method == http.MethodPost && a.Status != http.StatusUnauthorized {
			t.Errorf("%s without a session: %d to %q", pattern, a.Status, a.Header.Get("Location"))
		}
		if a := nobody.Do(method, path, "", "Sec-Fetch-Site", "same-origin"); a.Status != http.StatusForbidden && !open[pattern] {
			t.Errorf("%s without a role: %d", pattern, a.Status)
		}
		if method == http.MethodGet {
			continue
		}
		if a := viewer.Do(method, path, "", "Sec-Fetch-Site", "same-origin"); a.Status != http.StatusForbidden && !open[pattern] {
			t.Errorf("%s by a viewer: %d", pattern, a.Status)
		}
		for _, header := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"}} {
			if a := operator.Do(method, path, "", header...); a.Status != http.StatusForbidden {
				t.Errorf("%s sent by another page (%v): %d", pattern, header, a.Status)
			}
		}
	}
}

func TestFrame(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{})
	viewer := s.As("viewer")
	a := viewer.Want(200, "/", "<title>Overview - Pelton</title>", `<a class="skip" href="#main">`, `<a href="/" aria-current="page">Overview</a>`, "viewer", "Log out")
	if strings.Contains(a.Body, "<script>") || strings.Contains(a.Body, "<style") || strings.Contains(a.Body, "style=") || strings.Contains(a.Body, "onclick") {
		t.Error("inline script or style")
	}
	policy := a.Header.Get("Content-Security-Policy")
	if policy != "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'" {
		t.Errorf("policy: %s", policy)
	}
	if got := a.Header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("a page is cached: %s", got)
	}
	for _, name := range []string{"page.css", "page.js", "icon.svg"} {
		base, ending, _ := strings.Cut(name, ".")
		path := regexp.MustCompile(`/assets/` + base + `\.[0-9a-f]{16}\.` + ending).FindString(a.Body)
		got := s.As("").Want(200, path)
		if !strings.Contains(got.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %v", name, got.Header)
		}
		if again := s.As("").Get(path, "If-None-Match", got.Header.Get("ETag")); again.Status != http.StatusNotModified {
			t.Errorf("%s with its tag: %d", name, again.Status)
		}
		s.As("").Want(404, "/assets/"+name)
	}
	viewer.Want(404, "/nothing", "there is no such page", `aria-label="Rooms"`)
	s.As("").Want(200, "/login", "/assets/page.", "<h1>Log in</h1>")
	s.As("nobody").Want(403, "/queues", "Forbidden", "/assets/page.")
	s.As("etl").Want(200, "/", "Nothing was pushed yet to <bdi>etl</bdi>")
	viewer.Want(400, "/live?part=/live/overview&part=https://evil.example/")
	viewer.Want(404, "/live?part=/live/nothing")
	s.As("etl").Want(403, "/live?part=/live/overview")
	if a := s.As("").Post("/queues/pause", nil); a.Status != 401 || !strings.Contains(a.Body, "<h1>Not logged in</h1>") {
		t.Errorf("a form without a session: %d %s", a.Status, a.Body)
	}
}

// A live part comes at once, and again when it has changed; a stream ends when its reader loses the right to it.
func TestLive(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{})
	one, two := s.As("viewer").Stream("/live?part=/live/overview"), s.As("admin").Stream("/live?part=/live/overview")
	want := func(events <-chan pagetest.Event, text string) {
		t.Helper()
		limit := time.After(pagetest.Patience)
		for {
			select {
			case e, ok := <-events:
				if !ok {
					t.Fatalf("the stream ended before %q", text)
				}
				if strings.Contains(e.Name+" "+e.Data, text) {
					return
				}
			case <-limit:
				t.Fatalf("no event with %q", text)
			}
		}
	}
	want(one, "part0 ")
	want(two, "No queue is worked")
	s.Exec(`SELECT pelton.enqueue('task', queue => 'night-2')`)
	want(one, "night-2")
	want(two, "night-2")
	if _, err := s.Access.Disable(t.Context(), "test", "viewer"); err != nil {
		t.Fatal(err)
	}
	want(one, "over refused")
	s.Exec(`SELECT pelton.enqueue('task', queue => 'other')`)
	want(two, "other")
	// The end of the server ends what is open: the test's cleanup would fail.
}

func TestQueues(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{})
	operator, viewer := s.As("operator"), s.As("viewer")
	operator.WantPost(303, "/queues/pause", url.Values{"queue": {"mail"}}, "Paused queue mail.", "by <bdi>operator</bdi>")
	a := viewer.Want(200, "/queues", "paused", "mail", "by <bdi>operator</bdi>")
	if strings.Contains(a.Body, "<button>") {
		t.Error("a viewer sees buttons")
	}
	operator.WantPost(303, "/queues/resume", url.Values{"queue": {"mail"}}, "Resumed queue mail.", "resumed")
	operator.WantPost(303, "/queues/pause", url.Values{"queue": {"*"}}, "All queues are paused")
	operator.WantPost(303, "/queues/resume", url.Values{"queue": {"*"}}, "Resumed all queues")
	operator.WantPost(400, "/queues/pause", url.Values{"queue": {"a/b"}}, "a/b")
	operator.WantPost(400, "/queues/pause", nil)
	s.Exec(`CREATE FUNCTION pelton.deny() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		RAISE EXCEPTION 'permission denied for table queue' USING ERRCODE = 'insufficient_privilege';
	END $$`)
	s.Exec(`CREATE TRIGGER deny BEFORE INSERT ON pelton.queue FOR EACH ROW EXECUTE FUNCTION pelton.deny()`)
	operator.WantPost(503, "/queues/pause", url.Values{"queue": {"new"}}, "Missing rights", "pelton grants")
	operator.Want(200, "/queues")
	if a := operator.Get("/queues"); strings.Contains(a.Body, "Resumed all queues.") {
		t.Error("a message is shown twice")
	}
	pgtest.Eventually(t, pagetest.Patience, func() bool {
		list, err := s.Jobs.AuditList(t.Context(), nil)
		return err == nil && len(list) > 0
	}, "the audit")
}

// Of very many queues each has its own figures, though metrics do not tell them apart; the overview has the busiest.
func TestVeryManyQueues(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{})
	s.Exec(`INSERT INTO pelton.job_ready (priority, line, job_ids) SELECT 1, 'q' || i, ARRAY[i] FROM generate_series(1, 250) i`)
	s.Exec(`INSERT INTO pelton.job_ready (priority, line, job_ids) VALUES (1, 'zebra', ARRAY[1001, 1002, 1003])`)
	viewer := s.As("viewer")
	pgtest.Eventually(t, pagetest.Patience, func() bool { return !strings.Contains(viewer.Get("/queues").Body, "Reading what waits") }, "the first reading")
	a := viewer.Want(200, "/queues", `<a href="/jobs?queue=zebra">`, `data-label="Ready">3<`)
	if n := strings.Count(a.Body, `data-label="Ready">1<`); n != 250 || strings.Contains(a.Body, "queue=other") {
		t.Errorf("%d queues with a job", n)
	}
	if n := strings.Count(a.Body, "no executor takes its jobs"); n != 251 {
		t.Errorf("%d queues that nobody works", n)
	}
	a = viewer.Want(200, "/", "253", "queue=zebra", "further <a href=\"/queues\">queues</a>")
	if n := strings.Count(a.Body, `<a href="/jobs?queue=`); n != 200 || strings.Contains(a.Body, "queue=other") {
		t.Errorf("%d queues on the overview", n)
	}
}

func TestVisible(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain\ttext\r\nöäü 日本 עברית 👩‍💻": "plain\ttext\nöäü 日本 עברית 👩‍💻",
		"\x1b[31mred\x07\x00\r\x7f":       "\u241b[31mred\u2407\u2400\u240d\u2421",
		"a\u202eb\u2066c":                 "a\u27e6U+202E\u27e7b\u27e6U+2066\u27e7c",
		"\xff\xfe":                        "\ufffd\ufffd",
		"\ufeffx\u200b":                   "\u27e6U+FEFF\u27e7x\u27e6U+200B\u27e7",
	} {
		if got := string(page.Visible([]byte(in))); got != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
	}
}

func TestVisiblePage(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"<p title=\"a\u200f\">b\u200f\r</p>":                        "<p title=\"a\u27e6U+200F\u27e7\">b\u27e6U+200F\u27e7\u240d</p>",
		"\u200f<input name=x value=\"a\u200f\rb\r\nc\">\u200f":      "\u27e6U+200F\u27e7<input name=x value=\"a&#8207;&#13;b\nc\">\u27e6U+200F\u27e7",
		"<textarea name=x>\na\u202e\x01\x00\u0085</textarea>\u202e": "<textarea name=x>\na&#8238;&#1;\u2400\u27e6U+0085\u27e7</textarea>\u27e6U+202E\u27e7",
		"<option value=\"\u200b\">\u200b</option>":                  "<option value=\"&#8203;\">\u27e6U+200B\u27e7</option>",
		"<button value=\"\ufeff\">\ufeff</button>":                  "<button value=\"&#65279;\">\u27e6U+FEFF\u27e7</button>",
	} {
		if got := string(page.VisiblePage([]byte(in))); got != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
	}
}

// A read that takes too long gives a page that says so.
func TestTooLong(t *testing.T) {
	t.Parallel()
	s := pagetest.Start(t, pagetest.Options{})
	tx, err := s.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), `LOCK TABLE pelton.queue IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	s.As("viewer").Want(503, "/queues", "That took too long", "Ask for less")
}

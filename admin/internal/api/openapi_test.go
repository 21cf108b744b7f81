package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/peltonq/pelton/admin/access"
)

// openAPI is the part of the document that tests look at.
type openAPI struct {
	OpenAPI    string
	Info       struct{ Title, Version string }
	Paths      map[string]map[string]apiOperation
	Components struct {
		Schemas         map[string]any
		SecuritySchemes map[string]any
	}
	Security []map[string][]string
}

type apiOperation struct {
	OperationID string
	Summary     string
	Description string
	Tags        []string
	Parameters  []apiParameter
	RequestBody *struct {
		Required bool
		Content  map[string]struct{ Schema map[string]any }
	}
	Responses map[string]struct {
		Description string
		Content     map[string]struct{ Schema map[string]any }
	}
}

type apiParameter struct {
	Name, In string
	Required bool
	Schema   struct {
		Type  string
		Items struct {
			Type string
			Enum []any
		}
		Enum   []any
		Format string
	}
}

// document reads the document from the server.
func (s *service) document() (doc openAPI, text []byte) {
	s.t.Helper()
	r := s.ask(s.tokens[access.Viewer], "GET", "/openapi.json", nil)
	if r.status != http.StatusOK {
		s.t.Fatalf("%d: %s", r.status, r.body)
	}
	if err := json.Unmarshal(r.body, &doc); err != nil {
		s.t.Fatal(err)
	}
	return doc, r.body
}

// each calls fn for each operation of a document.
func (d openAPI) each(fn func(method, path string, op apiOperation)) {
	for path, item := range d.Paths {
		for method, op := range item {
			fn(strings.ToUpper(method), path, op)
		}
	}
}

// concrete is a path with values for what it names.
func concrete(path string) string {
	return regexp.MustCompile(`\{[^}]+\}`).ReplaceAllString(path, "4711")
}

func TestDocumentIsOpenAPI31(t *testing.T) {
	t.Parallel()
	s := start(t)
	doc, text := s.document()
	if doc.OpenAPI != "3.1.0" || doc.Info.Title == "" || doc.Info.Version == "" || len(doc.Paths) < 20 || len(doc.Security) == 0 {
		t.Errorf("%s %+v, %d paths", doc.OpenAPI, doc.Info, len(doc.Paths))
	}
	ids := map[string]bool{}
	doc.each(func(method, path string, op apiOperation) {
		name := method + " " + path
		if ids[op.OperationID] || !regexp.MustCompile(`^[a-z]+(-[a-z]+)+$`).MatchString(op.OperationID) {
			t.Errorf("%s: id %q", name, op.OperationID)
		}
		ids[op.OperationID] = true
		if len(op.Tags) != 1 || op.Summary == "" || strings.HasSuffix(op.Summary, ".") || !strings.HasPrefix(path, "/api/v1/") {
			t.Errorf("%s: tags %q, summary %q", name, op.Tags, op.Summary)
		}
		good := 0
		for status, r := range op.Responses {
			if r.Description == "" {
				t.Errorf("%s: %s has no description", name, status)
			}
			if status < "300" {
				good++
			} else if r.Content["application/problem+json"].Schema["$ref"] != "#/components/schemas/Problem" {
				t.Errorf("%s: %s is no problem: %v", name, status, r.Content)
			}
		}
		want := []string{"401", "403", "422", "500", "503", "504"}
		if op.RequestBody != nil {
			want = append(want, "400", "408", "413", "415")
			if len(op.RequestBody.Content) != 1 || !op.RequestBody.Required && op.OperationID != "runs-retry" {
				t.Errorf("%s: body %+v", name, op.RequestBody)
			}
			for kind, c := range op.RequestBody.Content {
				if len(c.Schema) == 0 || kind != "application/json" && kind != "application/zip" {
					t.Errorf("%s: body %s %+v", name, kind, c)
				}
			}
		}
		var named []string
		for _, p := range op.Parameters {
			if p.In == "path" {
				named = append(named, "{"+p.Name+"}")
				if !p.Required {
					t.Errorf("%s: %s is not required", name, p.Name)
				}
			}
			if p.Schema.Type == "" {
				t.Errorf("%s: parameter %s has no type", name, p.Name)
			}
		}
		if in := regexp.MustCompile(`\{[^}]+\}`).FindAllString(path, -1); !slices.Equal(in, named) {
			t.Errorf("%s: the path names %v, the parameters %v", name, in, named)
		}
		if len(named) > 0 {
			want = append(want, "404")
		}
		for _, status := range want {
			if _, ok := op.Responses[status]; !ok {
				t.Errorf("%s: no response %s", name, status)
			}
		}
		if good == 0 {
			t.Errorf("%s: no good response", name)
		}
	})
	for _, ref := range regexp.MustCompile(`"\$ref":"([^"]*)"`).FindAllStringSubmatch(string(text), -1) {
		if name, ok := strings.CutPrefix(ref[1], "#/components/schemas/"); !ok || doc.Components.Schemas[name] == nil {
			t.Errorf("reference %s leads nowhere", ref[1])
		}
	}
	if found := regexp.MustCompile(`https?://[^"]*`).FindString(string(text)); found != "" {
		t.Errorf("the document names another host: %s", found)
	}
}

// Each operation is refused to nobody, and to who has too low a role, before anything else is looked at.
func TestOperationsNeedTheirRoles(t *testing.T) {
	t.Parallel()
	s := start(t)
	doc, _ := s.document()
	ofProject := s.token(access.NewToken{User: "admin", Role: access.Admin, Project: "etl"})
	doc.each(func(method, path string, op apiOperation) {
		path = concrete(path)
		r := s.ask("", method, path, nil, "Accept", "text/html")
		s.problemOf(r, http.StatusUnauthorized, "not-logged-in", "not logged in")
		if r.header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s %s: no WWW-Authenticate", method, path)
		}
		if strings.Contains(op.Description, "depends on the project") {
			return
		}
		needs := regexp.MustCompile(`Needs the role (\w+) for everything`).FindStringSubmatch(op.Description)
		if needs == nil {
			t.Errorf("%s says of no role: %q", op.OperationID, op.Description)
			return
		}
		role, err := access.ParseRole(needs[1])
		if err != nil || role != access.Admin && (role == access.Viewer) != (method == http.MethodGet) {
			t.Errorf("%s %s needs %q", method, path, needs[1])
		}
		s.problemOf(s.ask(ofProject, method, path, nil), http.StatusForbidden, "forbidden", "for everything")
		if role > access.Viewer {
			s.problemOf(s.ask(s.tokens[role-1], method, path, nil), http.StatusForbidden, "forbidden", "has no role "+role.String())
		}
		if r := s.ask(s.tokens[role], method, path, nil); r.status == http.StatusForbidden || r.status == http.StatusUnauthorized {
			t.Errorf("%s %s is refused to %s: %s", method, path, role, r.body)
		}
	})
}

func TestWhatNoOperationAnswers(t *testing.T) {
	t.Parallel()
	s := start(t)
	token := s.tokens[access.Admin]
	for _, path := range []string{"/api", "/api/", "/api/v1", "/api/v2/jobs", "/api/v1/jbos", "/api/v1/jobs/1/nothing"} {
		r := s.ask(token, "GET", path, nil, "Accept", "text/html")
		if path == "/api" && r.status != http.StatusNotFound {
			continue // the mux sends it to /api/
		}
		if path != "/api" {
			s.problemOf(r, http.StatusNotFound, "no-such-path", path)
		}
	}
	r := s.ask(token, "PUT", "/api/v1/jobs", "{}")
	s.problemOf(r, http.StatusMethodNotAllowed, "method-not-allowed", "PUT")
	if r.header.Get("Allow") != "GET, POST" {
		t.Errorf("Allow: %s", r.header.Get("Allow"))
	}
	s.problemOf(s.ask("", "GET", "/api/v1/jbos", nil, "Accept", "text/html"), http.StatusUnauthorized, "not-logged-in", "")
	s.problemOf(s.ask("pelton_wrong", "GET", "/api/v1/jobs", nil), http.StatusUnauthorized, "not-logged-in", "")
	s.problemOf(s.ask("", "POST", "/api/v1/jobs", `{"kind":"noop"}`, "Origin", "https://evil.example"), http.StatusForbidden, "forbidden", "another page")
	s.problemOf(s.ask(token, "GET", "/api/v1/queues/%ff", nil), http.StatusUnprocessableEntity, "invalid-request", "no text")
}

func TestBodiesThatAreRefused(t *testing.T) {
	t.Parallel()
	s := start(t)
	token := s.tokens[access.Admin]
	for _, c := range []struct {
		path, body, contentType string
		status                  int
		kind, says              string
	}{
		{"/api/v1/jobs", `{"kind":`, "", 400, "bad-body", "body: unexpected end"},
		{"/api/v1/jobs", ``, "", 400, "bad-body", "required"},
		{"/api/v1/jobs", `[]`, "", 422, "invalid-request", "object"},
		{"/api/v1/jobs", `{"kind":"noop"}`, "application/x-www-form-urlencoded", 415, "unsupported-media-type", "application/json"},
		{"/api/v1/jobs", `{"kind":"noop","priorty":1}`, "", 422, "invalid-request", `body.priorty: unknown field; did you mean "priority"?`},
		{"/api/v1/jobs/many", `{"jobs":[{"kind":"noop"},{"kidn":"noop"}]}`, "", 422, "invalid-request", `body.jobs[1].kidn: unknown field; did you mean "kind"?`},
		{"/api/v1/jobs", `{"kind":"noop","priority":"high"}`, "", 422, "invalid-request", "body.priority"},
		{"/api/v1/jobs", `{"kind":"noop","priority":9}`, "", 422, "invalid-job", "priority"},
		{"/api/v1/jobs", `{"kind":"noop","priority":0}`, "", 422, "invalid-job", "priority is 0"},
		{"/api/v1/jobs", `{"kind":"noop","at":"soon"}`, "", 422, "invalid-request", "body.at"},
		{"/api/v1/jobs", `{"kind":""}`, "", 422, "invalid-job", "kind is missing"},
		{"/api/v1/jobs", `{"kind":"noop","queue":"No Queue"}`, "", 422, "invalid-job", "No Queue"},
		{"/api/v1/jobs", `{"kind":"noop","args":{"a":"\u0000"}}`, "", 422, "invalid-job", ""},
		{"/api/v1/jobs", `{"kind":"command","args":{"comand":"x"}}`, "", 422, "invalid-job", "comand"},
		{"/api/v1/jobs", `{"kind":"noop","args":"` + strings.Repeat("a", 1<<20) + `"}`, "", 422, "invalid-job", "args"},
		{"/api/v1/jobs", `{"kind":"noop","args":"` + strings.Repeat("a", 3<<20) + `"}`, "", 413, "body-too-large", "too large"},
		{"/api/v1/jobs/many", `{"jobs":[` + strings.Repeat(`{"kind":"noop"},`, 10_000) + `{"kind":"noop"}]}`, "", 422, "invalid-request", "10000"},
		{"/api/v1/jobs/many", `{"jobs":[{"kind":"noop"},{"kind":"noop","queue":"No Queue"}]}`, "", 422, "invalid-job", "body.jobs[1]: "},
		{"/api/v1/jobs/many", `{"jobs":[]}`, "", 422, "invalid-request", "body.jobs"},
		{"/api/v1/dead/redrive", `{}`, "", 422, "invalid-request", "which dead letters"},
		{"/api/v1/dead/discard", `{"all":true,"kinds":["a"]}`, "", 422, "invalid-request", "want one of them"},
		{"/api/v1/dead/discard", `{"kinds":["\u0000"]}`, "", 422, "invalid-request", ""},
	} {
		headers := []string{}
		if c.contentType != "" {
			headers = []string{"Content-Type", c.contentType}
		}
		r := s.ask(token, "POST", c.path, c.body, headers...)
		p := s.problemOf(r, c.status, c.kind, c.says)
		if len(p.Detail) > 2000 {
			t.Errorf("%s: the detail has %d bytes: it echoes the request", c.path, len(p.Detail))
		}
	}
	if page := do[jobPage](s, access.Viewer, http.StatusOK, "GET", "/api/v1/jobs", nil); len(page.Items) > 0 {
		t.Errorf("%d jobs were enqueued", len(page.Items))
	}
}

// Each operation that takes a body refuses one that is larger than it may be, as that and as nothing else, and reads one that is just not.
func TestBodiesAreBounded(t *testing.T) {
	t.Parallel()
	s := start(t)
	doc, _ := s.document()
	limits := map[string]int{"jobs-enqueue": 3 << 20, "jobs-enqueue-many": 16 << 20, "jobs-update": 3 << 20}
	seen := 0
	doc.each(func(method, path string, op apiOperation) {
		if op.RequestBody == nil || op.RequestBody.Content["application/json"].Schema == nil {
			return
		}
		limit, special := limits[op.OperationID]
		if special {
			seen++
		} else {
			limit = 1 << 20
		}
		const ends = len(`{"x":""}`)
		token := s.tokens[access.Admin]
		r := s.ask(token, method, concrete(path), `{"x":"`+strings.Repeat("a", limit+1-ends)+`"}`)
		s.problemOf(r, http.StatusRequestEntityTooLarge, "body-too-large", "")
		if r := s.ask(token, method, concrete(path), `{"x":"`+strings.Repeat("a", limit-ends)+`"}`); r.status != http.StatusUnprocessableEntity {
			t.Errorf("%s %s with %d bytes: %d, want 422, since it has no field x", method, path, limit, r.status)
		}
	})
	if seen != len(limits) {
		t.Errorf("%d of %d operations with limits of their own are in the document", seen, len(limits))
	}
}

// What SQL would take for its own, in every text that an operation takes, is text: it finds nothing, or is refused, and changes nothing.
func TestSQLInEveryParameter(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.enqueue(map[string]any{"kind": "keep"})
	doc, text := s.document()
	var whole map[string]any
	if err := json.Unmarshal(text, &whole); err != nil {
		t.Fatal(err)
	}
	evil := []string{
		`'; DROP TABLE pelton.job; --`, `' OR '1'='1`, `1); DELETE FROM pelton.job WHERE (1=1`, `$1`, `%27%20OR%201=1`, `\'; SELECT pg_sleep(60); --`,
		`{"a":"' OR true --"}`, `"`, `%`, `_`, `*`, `../../etc/passwd`, "\u2028", `${x}`, `[]`, `{`, `NULL`,
	}
	tried := 0
	ask := func(method, path string, body any, headers ...string) {
		t.Helper()
		tried++
		if r := s.ask(s.tokens[access.Admin], method, path, body, headers...); r.status >= http.StatusInternalServerError {
			t.Errorf("%s %s %v: %d %s", method, path, body, r.status, r.body)
		}
	}
	doc.each(func(method, path string, op apiOperation) {
		if op.OperationID == "jobs-log-follow" || op.OperationID == "partitions-maintain" {
			return // one waits for the end of a run; the other takes nothing
		}
		for _, e := range evil {
			for _, p := range op.Parameters {
				switch {
				case p.In == "path" && p.Schema.Type == "string":
					ask(method, strings.ReplaceAll(concrete(strings.ReplaceAll(path, "{"+p.Name+"}", "\x00")), "\x00", escape(e)), bodyWith(whole, op, ""))
				case p.In == "query" && method == http.MethodGet:
					ask(method, concrete(path)+"?"+p.Name+"="+url.QueryEscape(e), nil)
				case p.In == "header" && p.Schema.Type == "string":
					ask(method, concrete(path), bodyWith(whole, op, ""), p.Name, strings.Trim(fmt.Sprintf("%q", e), `"`))
				}
			}
			if op.RequestBody != nil {
				ask(method, concrete(path), bodyWith(whole, op, e))
			}
		}
	})
	if tried < 300 {
		t.Errorf("only %d requests were tried", tried)
	}
	page := do[jobPage](s, access.Viewer, http.StatusOK, "GET", "/api/v1/jobs?kind=keep", nil)
	if len(page.Items) != 1 || page.Items[0].State != "available" {
		t.Errorf("the job that was there: %+v", page.Items)
	}
}

// bodyWith is a body of an operation that has a text in every place that takes one; nil if it has no body.
func bodyWith(doc map[string]any, op apiOperation, text string) any {
	if op.RequestBody == nil {
		return nil
	}
	return valueOf(doc, op.RequestBody.Content["application/json"].Schema, text)
}

func valueOf(doc, schema map[string]any, text string) any {
	if ref, ok := schema["$ref"].(string); ok {
		at := any(doc)
		for step := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
			at = at.(map[string]any)[step]
		}
		schema = at.(map[string]any)
	}
	if enum, ok := schema["enum"].([]any); ok {
		return enum[0]
	}
	kind := fmt.Sprint(schema["type"])
	switch {
	case schema["format"] == "date-time":
		return "2999-01-01T00:00:00Z"
	case strings.Contains(kind, "string"):
		return text
	case strings.Contains(kind, "integer"), strings.Contains(kind, "number"):
		return 1
	case strings.Contains(kind, "boolean"):
		return false
	case strings.Contains(kind, "array"):
		items, _ := schema["items"].(map[string]any)
		return []any{valueOf(doc, items, text)}
	case strings.Contains(kind, "object"):
		object := map[string]any{}
		properties, _ := schema["properties"].(map[string]any)
		for name, p := range properties {
			object[name] = valueOf(doc, p.(map[string]any), text)
		}
		if extra, ok := schema["additionalProperties"].(map[string]any); ok {
			object[text] = valueOf(doc, extra, text)
		}
		return object
	}
	return map[string]any{text: text} // any JSON
}

func escape(text string) string { return url.PathEscape(text) }

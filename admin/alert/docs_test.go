package alert_test

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/peltonq/pelton/admin/alert"
)

// The examples in docs/alerts.md are right, and what it says is built in is.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/alerts.md")
	must(t, err)
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(examples) != 3 {
		t.Fatalf("docs/alerts.md has %d examples", len(examples))
	}
	var last *alert.File
	for _, e := range examples {
		if last, err = alert.Parse("docs/alerts.md", []byte(e[1])); err != nil {
			t.Errorf("%v in\n%s", err, e[1])
		}
	}
	built := map[string]alert.Rule{}
	for _, r := range alert.BuiltIn().Rules {
		built[r.Name] = r
	}
	for _, r := range last.Rules {
		if !reflect.DeepEqual(r, built[r.Name]) {
			t.Errorf("docs/alerts.md has\n%+v, built in is\n%+v", r, built[r.Name])
		}
		delete(built, r.Name)
	}
	if len(built) != 0 {
		t.Errorf("docs/alerts.md does not have %v", built)
	}
	fence := regexp.MustCompile("(?s)```json\n(.*?)```").FindSubmatch(text)
	decoder := json.NewDecoder(strings.NewReader(string(fence[1])))
	decoder.DisallowUnknownFields()
	var n alert.Notice
	must(t, decoder.Decode(&n))
	again, err := json.MarshalIndent(n, "", "  ")
	must(t, err)
	if string(again)+"\n" != string(fence[1]) {
		t.Errorf("a notice is\n%s", again)
	}
}

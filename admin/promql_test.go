package admin_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// expression is what an expression of PromQL asks for.
type expression struct {
	metrics map[string][]string // labels that their selectors name
	values  map[string][]string // plain words that they compare labels with
	by      []string            // labels that it groups or joins by
}

var (
	promToken = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\$\w+|[A-Za-z_:][A-Za-z0-9_:]*|[0-9][0-9a-zA-Z.]*|=~|!~|!=|[-+*/%^<>=(){}\[\],@]`)
	promName  = regexp.MustCompile(`^[A-Za-z_:]`)
	grouping  = []string{"by", "without", "on", "ignoring", "group_left", "group_right"}
	keywords  = []string{"and", "or", "unless", "bool", "offset", "inf", "nan"}
)

// parseExpression finds the names in an expression that promtool has found to be right, or that is like those. What it does not know, it takes for a metric.
func parseExpression(text string) expression {
	e := expression{metrics: map[string][]string{}, values: map[string][]string{}}
	tokens := promToken.FindAllString(text, -1)
	at := func(i int) string {
		if i < len(tokens) {
			return tokens[i]
		}
		return ""
	}
	last := ""
	for i := 0; i < len(tokens); i++ {
		switch token := tokens[i]; {
		case slices.Contains(grouping, token):
			if at(i+1) != "(" {
				continue
			}
			for i += 2; i < len(tokens) && tokens[i] != ")"; i++ {
				if tokens[i] != "," {
					e.by = append(e.by, tokens[i])
				}
			}
		case token == "{":
			for i++; i < len(tokens) && tokens[i] != "}"; i++ {
				if promName.MatchString(tokens[i]) {
					e.metrics[last] = append(e.metrics[last], tokens[i])
					e.values[last] = append(e.values[last], words(at(i+2))...)
				}
			}
		case promName.MatchString(token) && !slices.Contains(keywords, token) && !slices.Contains([]string{"(", "by", "without"}, at(i+1)):
			last = token
			e.metrics[last] = append(e.metrics[last], []string{}...)
		}
	}
	return e
}

// words are those that a matcher's string is made of, if it is a plain alternative of them.
func words(quoted string) []string {
	text := strings.Trim(quoted, `"`)
	if !regexp.MustCompile(`^[A-Za-z_]+(\|[A-Za-z_]+)*$`).MatchString(text) {
		return nil
	}
	return strings.Split(text, "|")
}

func TestParseExpression(t *testing.T) {
	t.Parallel()
	e := parseExpression(`sum by (queue, le) (rate(a_total{queue=~"$queue",outcome=~"x|y"}[$__rate_interval])) / on (le) group_left (z) b{q="by (no)"} > 0.2e3
		and max(c) offset 5m >= bool 7 * 86400 or vector(0)`)
	want := map[string][]string{"a_total": {"queue", "outcome"}, "b": {"q"}, "c": {}}
	for name, labels := range want {
		if got, ok := e.metrics[name]; !ok || !slices.Equal(got, labels) {
			t.Errorf("%s has %q (%v), want %q", name, got, ok, labels)
		}
	}
	if len(e.metrics) != len(want) || !slices.Equal(e.by, []string{"queue", "le", "le", "z"}) || !slices.Equal(e.values["a_total"], []string{"x", "y"}) {
		t.Errorf("found %+v", e)
	}
}

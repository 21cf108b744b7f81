package api

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/peltonq/pelton/admin/internal/reach"
	"github.com/peltonq/pelton/internal/suggest"
)

// checkParameters refuses parameters that the operation does not have, that are given without a value or more often than it makes
// sense, and texts that no database can hold.
func checkParameters(r *http.Request, op *huma.Operation) *problem {
	if path := r.URL.Path; !reach.Storable(path) {
		return newProblem("invalid-request", "the path holds bytes that are no text")
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return newProblem("invalid-request", "the query cannot be read: %v", err)
	}
	known := map[string]*huma.Param{}
	var names []string
	for _, p := range op.Parameters {
		if p.In == "query" {
			known[p.Name] = p
			names = append(names, p.Name)
		}
	}
	for name, values := range query {
		at := "query." + name
		p := known[name]
		switch {
		case p == nil && len(names) == 0:
			return invalid(at, "unknown parameter; %s %s has none", op.Method, op.Path)
		case p == nil:
			return invalid(at, "unknown parameter%s", suggest.Near(name, names))
		case len(values) > 1 && p.Schema.Type != huma.TypeArray:
			return invalid(at, "given %d times, want it once", len(values))
		case slices.Contains(values, ""):
			return invalid(at, "empty; leave it out, or give it a value")
		case !reach.Storable(values...):
			return invalid(at, "holds bytes that are no text: want UTF-8 without NUL")
		}
	}
	return nil
}

func joined(list []string) string { return strings.Join(list, ", ") }

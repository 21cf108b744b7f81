package jobs

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/riverqueue/river"
)

// uniquePathsByType keeps what uniquePaths found per args type.
var uniquePathsByType sync.Map // reflect.Type -> [][]string

// uniquePaths lists the JSON paths of the fields tagged river:"unique", sorted. Struct fields are entered; an embedded
// struct's fields stand at their parent's level; a tagged struct without tagged fields counts whole.
func uniquePaths(args river.JobArgs) ([][]string, error) {
	t := reflect.TypeOf(args)
	if known, ok := uniquePathsByType.Load(t); ok {
		paths, _ := known.([][]string) // nothing else is kept there
		return paths, nil
	}
	if t == nil || structOf(t) == nil {
		return nil, fmt.Errorf("unique by args: args are a %T, want a struct", args)
	}
	paths := taggedPaths(structOf(t), nil, map[reflect.Type]bool{})
	slices.SortFunc(paths, func(a, b []string) int {
		return cmp.Compare(strings.Join(a, "."), strings.Join(b, "."))
	})
	uniquePathsByType.Store(t, paths)
	return paths, nil
}

// structOf returns t if it is a struct, what it points to if that is one, else nil.
func structOf(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	return t
}

func taggedPaths(t reflect.Type, path []string, seen map[reflect.Type]bool) [][]string {
	if seen[t] {
		return nil // a recursive type: its value counts whole where it is tagged
	}
	seen[t] = true
	var found [][]string
	for f := range t.Fields() {
		if !f.IsExported() {
			continue
		}
		own := append(slices.Clip(path), jsonName(f))
		tagged := hasUniqueTag(f)
		if inner := structOf(f.Type); inner != nil {
			at := own
			if f.Anonymous {
				at = path
			}
			if below := taggedPaths(inner, at, seen); len(below) > 0 {
				found = append(found, below...)
				continue
			}
		}
		if tagged {
			found = append(found, own)
		}
	}
	return found
}

func hasUniqueTag(f reflect.StructField) bool {
	for tag := range strings.SplitSeq(f.Tag.Get("river"), ",") {
		if strings.TrimSpace(tag) == "unique" {
			return true
		}
	}
	return false
}

// jsonName is the key under which encoding/json writes a field.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return cmp.Or(name, f.Name)
}

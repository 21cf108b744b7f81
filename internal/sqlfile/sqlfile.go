package sqlfile

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
)

var (
	schemaName = regexp.MustCompile(`\bpelton\.`)
	channel    = regexp.MustCompile(`'pelton_wake'`)
	comment    = regexp.MustCompile(`(?m)--.*$`)
	space      = regexp.MustCompile(`\s+`)
)

// Set holds statements by name, ready for one schema.
type Set struct {
	statements map[string]string
}

// Load reads every .sql file under dir; a statement's name is its file's base name without the ending. It panics on an
// unreadable file: the files are embedded, so that is a fault of the build.
func Load(files fs.FS, dir, schema string) *Set {
	s := &Set{statements: map[string]string{}}
	entries, err := fs.ReadDir(files, dir)
	if err != nil {
		panic(fmt.Errorf("read statements under %q: %w", dir, err))
	}
	for _, e := range entries {
		text, err := fs.ReadFile(files, path.Join(dir, e.Name()))
		if err != nil {
			panic(fmt.Errorf("read statement %q: %w", e.Name(), err))
		}
		text2 := comment.ReplaceAllString(string(text), "")
		s.statements[strings.TrimSuffix(e.Name(), ".sql")] = strings.TrimSpace(space.ReplaceAllString(ForSchema(text2, schema), " "))
	}
	return s
}

// Get returns a statement. It panics if there is none of that name.
func (s *Set) Get(name string) string {
	sql, ok := s.statements[name]
	if !ok {
		panic(fmt.Sprintf("no statement %q", name))
	}
	return sql
}

// ForSchema replaces the schema name pelton in an SQL text by schema, and the name of the wake-up channel by the schema's own.
func ForSchema(text, schema string) string {
	quoted := pgx.Identifier{schema}.Sanitize()
	text = strings.ReplaceAll(text, "SCHEMA IF NOT EXISTS pelton;", "SCHEMA IF NOT EXISTS "+quoted+";")
	text = schemaName.ReplaceAllLiteralString(text, quoted+".")
	return channel.ReplaceAllLiteralString(text, "'"+strings.ReplaceAll(WakeChannel(schema), "'", "''")+"'")
}

// WakeChannel is the LISTEN/NOTIFY channel of a schema, at most 63 bytes.
func WakeChannel(schema string) string {
	if len(schema) > 50 {
		schema = schema[:50]
	}
	return schema + "_wake"
}

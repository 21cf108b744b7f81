package sqlfile

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
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
		s.statements[strings.TrimSuffix(e.Name(), ".sql")] = ForSchema(oneLine(string(text)), schema)
	}
	return s
}

// oneLine takes comments and line ends out of a text. No statement here has a literal with two dashes or with more than one space in a row.
func oneLine(text string) string {
	var words []string
	for line := range strings.Lines(text) {
		code, _, _ := strings.Cut(line, "--")
		words = append(words, strings.Fields(code)...)
	}
	return strings.Join(words, " ")
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
	text = replaceWord(text, "pelton.", quoted+".")
	return strings.ReplaceAll(text, "'pelton_wake'", "'"+strings.ReplaceAll(WakeChannel(schema), "'", "''")+"'")
}

// replaceWord replaces a word that nothing stands before which could be a part of it. Every client and every room reads its statements when it
// is made, so this is no regular expression.
func replaceWord(text, word, by string) string {
	var b strings.Builder
	for {
		at := strings.Index(text, word)
		if at < 0 {
			return b.String() + text
		}
		b.WriteString(text[:at])
		if before, _ := utf8.DecodeLastRuneInString(text[:at]); before == '_' || unicode.IsLetter(before) || unicode.IsDigit(before) {
			b.WriteString(word)
		} else {
			b.WriteString(by)
		}
		text = text[at+len(word):]
	}
}

// WakeChannel is the LISTEN/NOTIFY channel of a schema, at most 63 bytes.
func WakeChannel(schema string) string {
	if len(schema) > 50 {
		schema = schema[:50]
	}
	return schema + "_wake"
}

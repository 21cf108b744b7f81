package schema

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/peltonq/pelton/internal/sqlfile"
)

// renamed is a file system of SQL files that puts the configured schema's name into each.
type renamed struct {
	fs.ReadDirFS
	schema string
}

func (r renamed) Open(name string) (fs.File, error) {
	f, err := r.ReadDirFS.Open(name)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || info.IsDir() {
		return f, err
	}
	text, err := fs.ReadFile(r.ReadDirFS, name)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &textFile{File: f, text: strings.NewReader(sqlfile.ForSchema(string(text), r.schema))}, nil
}

// textFile is an open file whose contents were replaced.
type textFile struct {
	fs.File
	text *strings.Reader
}

func (f *textFile) Read(p []byte) (int, error) { return f.text.Read(p) }

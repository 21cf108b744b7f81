package schema

import (
	"io/fs"
	"strings"
)

// textFile is an open file whose contents were replaced.
type textFile struct {
	fs.File
	text *strings.Reader
}

func newTextFile(f fs.File, text string) *textFile {
	return &textFile{File: f, text: strings.NewReader(text)}
}

func (f *textFile) Read(p []byte) (int, error) { return f.text.Read(p) }

package scrub

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
)

// Least is how long a form must be, so that little else looks like it; lines of a longer value must be longer.
const (
	Least     = 4
	leastLine = 8
)

// Stars stand for what was taken out.
const Stars = "***"

// Set knows what must not be printed. The nil set is empty.
type Set struct {
	forms   [][]byte // longest first
	longest int
}

// New makes a set of values.
func New(values map[string][]byte) *Set {
	s := &Set{}
	for _, value := range values {
		s.addAll(value)
	}
	slices.SortFunc(s.forms, func(a, b []byte) int { return cmp.Or(cmp.Compare(len(b), len(a)), bytes.Compare(a, b)) })
	s.forms = slices.CompactFunc(s.forms, bytes.Equal)
	if len(s.forms) > 0 {
		s.longest = len(s.forms[0])
	}
	return s
}

// addAll adds the forms of a value.
func (s *Set) addAll(value []byte) {
	s.add(value)
	if lines := bytes.Split(value, []byte("\n")); len(lines) > 1 {
		for _, line := range lines {
			if line = bytes.TrimSpace(line); len(line) >= leastLine {
				s.add(line)
			}
		}
	}
	for _, alphabet := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		s.add([]byte(alphabet.EncodeToString(value)))
		s.add([]byte(alphabet.WithPadding(base64.NoPadding).EncodeToString(value)))
		for before := range 3 {
			s.add(within(alphabet.WithPadding(base64.NoPadding), value, before))
		}
	}
	text := string(value)
	query, path := url.QueryEscape(text), url.PathEscape(text)
	s.add([]byte(query), []byte(lowerEscapes(query)), []byte(path), []byte(lowerEscapes(path)))
	s.add([]byte(strings.ReplaceAll(query, "+", "%20")), []byte(lowerEscapes(strings.ReplaceAll(query, "+", "%20"))))
	plain := asJSON(text)
	s.add([]byte(plain))
	for _, style := range jsonStyles {
		s.add([]byte(style.escape(plain)))
	}
}

func (s *Set) add(forms ...[]byte) {
	for _, form := range forms {
		if len(form) >= Least {
			s.forms = append(s.forms, form)
		}
	}
}

// within is what stands in base64 for a value behind so many bytes of something else: the characters that hold nothing else.
func within(alphabet *base64.Encoding, value []byte, before int) []byte {
	encoded := alphabet.EncodeToString(append(make([]byte, before), value...))
	first := (before*8 + 5) / 6
	last := (before + len(value)) * 8 / 6
	return []byte(encoded[first:last])
}

// lowerEscapes writes %2F as %2f.
func lowerEscapes(text string) string {
	b := []byte(text)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], bytes.ToLower(b[i+1:i+3]))
		}
	}
	return string(b)
}

// asJSON is a text within the quotes of JSON, with no more escapes than must be.
func asJSON(text string) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(text) != nil { // a text is always encoded
		return ""
	}
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(b.String()), `"`), `"`)
}

// jsonStyle is what a library escapes beyond what must be.
type jsonStyle struct {
	signs  string // of ASCII
	format string // how
	others string // how what is not ASCII; empty: as it is
	slash  bool   // / as \/
	quote  bool   // " as \u0022
}

// Formats of an escaped code unit: the same library may write some with small digits and others with large ones.
const small, large = `\u%04x`, `\u%04X`

var jsonStyles = []jsonStyle{
	{signs: "<>&", format: small}, // Go
	{others: small},               // Python
	{others: small, slash: true},  // PHP
	{slash: true},                 // PHP with JSON_UNESCAPED_UNICODE
	{signs: "<>&'", format: large, others: small, slash: true},              // PHP with JSON_HEX_TAG, JSON_HEX_AMP and JSON_HEX_APOS
	{signs: "<>&'", format: large, others: small, slash: true, quote: true}, // and JSON_HEX_QUOT
	{signs: "<>&'=", format: small},                                         // Java (Gson)
	{others: large},                                                         // Java (Jackson)
	{signs: "<>&'+`", format: large, others: large, quote: true},            // .NET
}

func (j jsonStyle) escape(plain string) string {
	if j.quote {
		plain = strings.ReplaceAll(plain, `\"`, `\u0022`)
	}
	var b strings.Builder
	for _, r := range plain {
		switch {
		case strings.ContainsRune(j.signs, r):
			fmt.Fprintf(&b, j.format, r)
		case j.others != "" && r > unicode.MaxASCII:
			for _, unit := range utf16.AppendRune(nil, r) {
				fmt.Fprintf(&b, j.others, unit)
			}
		case j.slash && r == '/':
			b.WriteString(`\/`)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// In tells whether a text holds something of the set.
func (s *Set) In(text string) bool {
	if s == nil {
		return false
	}
	for _, form := range s.forms {
		if strings.Contains(text, string(form)) {
			return true
		}
	}
	return false
}

// Text is a text without what is in the set.
func (s *Set) Text(text string) string {
	if !s.In(text) {
		return text
	}
	var out bytes.Buffer
	w := s.Writer(&out)
	_, _ = w.Write([]byte(text)) // a buffer takes everything
	_ = w.Close()
	return out.String()
}

// Error is an error whose text is without what is in the set. It is still what it was for errors.Is and errors.As.
func (s *Set) Error(err error) error {
	if err == nil || !s.In(err.Error()) {
		return err
	}
	return &scrubbed{s.Text(err.Error()), err}
}

type scrubbed struct {
	text string
	err  error
}

func (e *scrubbed) Error() string        { return e.text }
func (e *scrubbed) Is(target error) bool { return errors.Is(e.err, target) }
func (e *scrubbed) As(target any) bool   { return errors.As(e.err, target) }

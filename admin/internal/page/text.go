package page

import (
	"bytes"
	"fmt"
	"regexp"
	"unicode/utf8"
)

// visible makes characters that act in a text visible: controls and terminal escapes become their pictures, changes of direction their
// numbers, bytes that are no UTF-8 the sign for that. Tabs, line ends and all letters of all languages stay.
func visible(text []byte) []byte {
	if !bytes.ContainsFunc(text, acts) {
		return text
	}
	out := make([]byte, 0, len(text)+len(text)/8)
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		switch {
		case r == utf8.RuneError:
			out = utf8.AppendRune(out, utf8.RuneError)
		case r == '\r' && i+1 < len(text) && text[i+1] == '\n':
			// an end of line
		case r < ' ' && acts(r):
			out = utf8.AppendRune(out, 0x2400+r)
		case r == 0x7f:
			out = utf8.AppendRune(out, 0x2421)
		case acts(r):
			const digits = "0123456789ABCDEF"
			out = append(out, "\u27e6U+"...)
			out = append(out, digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15])
			out = append(out, "\u27e7"...)
		default:
			out = append(out, text[i:i+n]...)
		}
		i += n
	}
	return out
}

// fields are the places of a page that are sent back with its forms. No other "<" or ">" stands in them: templates write those as entities.
var fields = regexp.MustCompile(`<textarea\b[^>]*>[^<]*|<(?:input|option|button)\b[^>]*>`)

// visiblePage is visible for a page as a whole: what HTML itself is made of has none of these characters. In fields they stay what they are,
// written as HTML's numbers: else a form that nobody touched would change what it shows.
func visiblePage(page []byte) []byte {
	if !bytes.ContainsFunc(page, acts) {
		return page
	}
	out := make([]byte, 0, len(page)+len(page)/8)
	done := 0
	for _, at := range fields.FindAllIndex(page, -1) {
		out = append(out, visible(page[done:at[0]])...)
		for _, r := range string(bytes.ReplaceAll(page[at[0]:at[1]], []byte("\r\n"), []byte("\n"))) {
			if acts(r) && r != 0 && r != utf8.RuneError && (r < 0x7f || r >= 0xa0) { // the others have no number that HTML takes as it is
				out = fmt.Appendf(out, "&#%d;", r)
			} else {
				out = append(out, visible(utf8.AppendRune(nil, r))...)
			}
		}
		done = at[1]
	}
	return append(out, visible(page[done:])...)
}

// acts tells whether a character does something instead of being seen.
func acts(r rune) bool {
	switch {
	case r < ' ':
		return r != '\n' && r != '\t'
	case r >= 0x7f && r < 0xa0, r == utf8.RuneError: // DEL and C1; what cannot be decoded
		return true
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069: // embeddings, overrides and isolates
		return true
	case r == 0x2028, r == 0x2029, r == 0xfeff, r >= 0x200b && r <= 0x200f && r != 0x200c && r != 0x200d: // what hides
		return true
	}
	return false
}

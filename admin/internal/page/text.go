package page

import (
	"bytes"
	"unicode/utf8"
)

// visible makes characters that act in a text visible: controls and terminal escapes become their pictures, changes of direction their
// numbers, bytes that are no UTF-8 the sign for that. Tabs, line ends and all letters of all languages stay. It is applied to every page as
// a whole: what HTML itself is made of has none of these.
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

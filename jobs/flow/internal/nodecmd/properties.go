package nodecmd

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"unicode/utf16"
)

// encodeProperties writes what java.util.Properties reads: ASCII, everything else as \uXXXX.
func encodeProperties(properties map[string]string) []byte {
	var b bytes.Buffer
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		encodeText(&b, key, true)
		b.WriteByte('=')
		encodeText(&b, properties[key], false)
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// encodeText escapes what would end a key, a comment's sign, and spaces that a reader would skip: all of a key, the first of a value.
func encodeText(b *bytes.Buffer, text string, key bool) {
	for i, r := range text {
		switch {
		case r == ' ' && (key || i == 0), r == '=', r == ':', r == '#', r == '!', r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\f':
			b.WriteString(`\f`)
		case r >= ' ' && r <= '~':
			b.WriteRune(r)
		default:
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(b, `\u%04X`, unit)
			}
		}
	}
}

package page

import (
	"slices"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// charsets are what a log's bytes may be read as, the usual one first.
var charsets = []string{"utf-8", "latin-1", "windows-1252", "utf-16le", "utf-16be"}

// decoder makes text of the bytes of one stream, piece by piece: a character may be split over two.
type decoder struct {
	charset string
	rest    []byte // the beginning of a character
	begun   bool
}

// decode makes text of the next bytes, which begin at a position of their stream. What cannot be read as the charset stays for render to mark.
func (d *decoder) decode(data []byte, pos int64) []byte {
	wide := d.charset == "utf-16le" || d.charset == "utf-16be"
	if !d.begun {
		d.begun = true
		switch {
		case wide && pos%2 == 1:
			data = data[min(1, len(data)):] // the page begins within a character
		case d.charset == "utf-8" && pos > 0:
			for n := 0; n < utf8.UTFMax-1 && len(data) > 0 && !utf8.RuneStart(data[0]); n++ {
				data = data[1:]
			}
		}
	}
	data = append(d.rest, data...)
	whole := len(data)
	switch {
	case wide:
		whole = wholeUTF16(data, d.charset == "utf-16be")
	case d.charset == "utf-8":
		whole = wholeUTF8(data)
	}
	d.rest = slices.Clone(data[whole:])
	return convert(d.charset, data[:whole])
}

func convert(charset string, data []byte) []byte {
	var e encoding.Encoding
	switch charset {
	case "latin-1":
		e = charmap.ISO8859_1
	case "windows-1252":
		e = charmap.Windows1252
	case "utf-16le":
		e = unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	case "utf-16be":
		e = unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	default:
		return data
	}
	text, err := e.NewDecoder().Bytes(data)
	if err != nil {
		return data // these decoders replace what they cannot read
	}
	return text
}

// wholeUTF8 is how many bytes there are of whole characters.
func wholeUTF8(data []byte) int {
	for i := len(data) - 1; i >= 0 && i >= len(data)-utf8.UTFMax; i-- {
		if utf8.RuneStart(data[i]) {
			if !utf8.FullRune(data[i:]) {
				return i
			}
			break
		}
	}
	return len(data)
}

// wholeUTF16 is how many bytes there are of whole characters.
func wholeUTF16(data []byte, big bool) int {
	whole := len(data) &^ 1
	if whole >= 2 {
		high := data[whole-1]
		if big {
			high = data[whole-2]
		}
		if high >= 0xd8 && high <= 0xdb { // the first half of a pair
			return whole - 2
		}
	}
	return whole
}

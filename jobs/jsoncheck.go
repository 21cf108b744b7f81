package jobs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Faults of JSON that Postgres could store but never read as text.
var (
	errNotUTF8   = errors.New("not valid UTF-8")
	errNUL       = errors.New(`holds \u0000, which Postgres cannot keep in text`)
	errSurrogate = errors.New(`holds half of a \uD800-\uDFFF surrogate pair`)
)

// checkJSON refuses JSON that is malformed, larger than limit, or that Postgres could not cast to jsonb later. what names it in
// errors.
func checkJSON(what string, b []byte, limit int) error {
	if len(b) > limit {
		return fmt.Errorf("%s is %d bytes, over the limit of %d", what, len(b), limit)
	}
	if !json.Valid(b) {
		return fmt.Errorf("%s is not valid JSON", what)
	}
	return checkEncoded(what, b, limit)
}

// checkEncoded is checkJSON for what encoding/json has written, which is well-formed.
func checkEncoded(what string, b []byte, limit int) error {
	if len(b) > limit {
		return fmt.Errorf("%s is %d bytes, over the limit of %d", what, len(b), limit)
	}
	if !utf8.Valid(b) {
		return fmt.Errorf("%s: %w", what, errNotUTF8)
	}
	if err := errors.Join(checkEscapes(b), checkNumbers(b)); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// checkEscapes looks at the \u escapes of valid JSON.
func checkEscapes(b []byte) error {
	high := false // the escape just before was the first half of a pair
	for {
		i := bytes.IndexByte(b, '\\')
		if i < 0 {
			break
		}
		if high && i > 0 {
			return errSurrogate
		}
		if b[i+1] != 'u' {
			if high {
				return errSurrogate
			}
			b = b[i+2:]
			continue
		}
		n, _ := strconv.ParseUint(string(b[i+2:i+6]), 16, 16) // four hex digits, as the JSON is valid
		r := rune(n)
		b = b[i+6:]
		switch {
		case r == 0:
			return errNUL
		case high != (r >= 0xdc00 && r <= 0xdfff):
			return errSurrogate
		case high:
			high = false
		default:
			high = utf16.IsSurrogate(r)
		}
	}
	if high {
		return errSurrogate
	}
	return nil
}

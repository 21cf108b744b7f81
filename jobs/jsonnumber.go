package jobs

import (
	"bytes"
	"errors"
	"strconv"
)

// Limits of Postgres' numeric, which jsonb keeps numbers in.
const (
	maxDigitsBefore = 131072  // decimal point
	maxDigitsAfter  = 16383   // decimal point
	maxExponent     = 1 << 29 // Postgres reads no exponent near 2^30, not even that of zero
)

var errNumber = errors.New("holds a number that Postgres cannot keep: want up to 131072 digits before and 16383 after the decimal point")

// checkNumbers looks at the numbers of valid JSON: those with an exponent, and very long ones.
func checkNumbers(b []byte) error {
	for i := 0; i < len(b); {
		switch c := b[i]; {
		case c == '"':
			i = endOfString(b, i)
		case c == '-' || c >= '0' && c <= '9':
			n := numberLen(b[i:])
			if !fitsNumeric(b[i : i+n]) {
				return errNumber
			}
			i += n
		default:
			i++
		}
	}
	return nil
}

// endOfString is the index after a string that begins at start.
func endOfString(b []byte, start int) int {
	for i := start + 1; ; {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return len(b)
		}
		i += n + 1
		slashes := 0
		for b[i-2-slashes] == '\\' {
			slashes++ // ends at the opening quote at the latest
		}
		if slashes%2 == 0 {
			return i
		}
	}
}

func numberLen(b []byte) int {
	for i, c := range b {
		switch {
		case c >= '0' && c <= '9', c == '-', c == '+', c == '.', c == 'e', c == 'E':
		default:
			return i
		}
	}
	return len(b)
}

// fitsNumeric tells whether numeric holds a JSON number as it is written.
func fitsNumeric(number []byte) bool {
	e := bytes.IndexAny(number, "eE")
	if e < 0 && len(number) <= maxDigitsAfter {
		return true
	}
	digits, exponent := bytes.TrimPrefix(number, []byte("-")), 0
	if e >= 0 {
		digits = bytes.TrimPrefix(number[:e], []byte("-"))
		n, err := strconv.Atoi(string(number[e+1:]))
		if err != nil || n > maxExponent || n < -maxExponent {
			return false
		}
		exponent = n
	}
	whole, fraction, _ := bytes.Cut(digits, []byte("."))
	if len(fraction)-exponent > maxDigitsAfter {
		return false
	}
	before := len(whole) + exponent // digits before the point, leading zeros included
	for _, c := range digits {
		switch c {
		case '.':
		case '0':
			before--
		default:
			return before <= maxDigitsBefore
		}
	}
	return true // zero
}

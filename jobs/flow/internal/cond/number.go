package cond

import (
	"cmp"
	"strconv"
	"strings"
)

// isNumber says whether a text is a decimal number: digits, perhaps with a sign, a fraction and an exponent. Words like "inf", hexadecimal
// numbers and spaces are not numbers, nor is an exponent that a float64 cannot hold.
func isNumber(s string) bool {
	mantissa, exponent, hasExponent := cutExponent(s)
	_, digits := cutSign(mantissa)
	whole, fraction, _ := strings.Cut(digits, ".")
	if whole+fraction == "" || !areDigits(whole) || !areDigits(fraction) {
		return false
	}
	if !hasExponent {
		return true
	}
	_, exponent = cutSign(exponent)
	if exponent == "" || !areDigits(exponent) {
		return false
	}
	_, err := strconv.ParseFloat(s, 64)
	return err == nil
}

// compareNumbers compares two numbers: exactly, unless one has an exponent.
func compareNumbers(a, b string) int {
	if _, _, has := cutExponent(a); has {
		return compareFloats(a, b)
	}
	if _, _, has := cutExponent(b); has {
		return compareFloats(a, b)
	}
	aMinus, aDigits := cutSign(a)
	bMinus, bDigits := cutSign(b)
	aWhole, aFraction := trim(aDigits)
	bWhole, bFraction := trim(bDigits)
	if aWhole+aFraction == "" && bWhole+bFraction == "" {
		return 0 // 0 and -0
	}
	if aMinus != bMinus {
		if aMinus {
			return -1
		}
		return 1
	}
	order := cmp.Or(cmp.Compare(len(aWhole), len(bWhole)), strings.Compare(aWhole, bWhole), strings.Compare(aFraction, bFraction))
	if aMinus {
		return -order
	}
	return order
}

func compareFloats(a, b string) int {
	// Out of range is infinite, which compares as it should; isNumber has seen the rest.
	x, _ := strconv.ParseFloat(a, 64)
	y, _ := strconv.ParseFloat(b, 64)
	return cmp.Compare(x, y)
}

// trim cuts digits at the point and takes zeros that say nothing away.
func trim(digits string) (whole, fraction string) {
	whole, fraction, _ = strings.Cut(digits, ".")
	return strings.TrimLeft(whole, "0"), strings.TrimRight(fraction, "0")
}

func cutExponent(s string) (mantissa, exponent string, found bool) {
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return s, "", false
}

func cutSign(s string) (minus bool, rest string) {
	if s != "" && (s[0] == '-' || s[0] == '+') {
		return s[0] == '-', s[1:]
	}
	return false, s
}

func areDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

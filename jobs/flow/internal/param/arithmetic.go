package param

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// maxNested bounds how deeply parentheses of arithmetic may be nested.
const maxNested = 100

// calculate replaces each $(expr) of a text by its result, inner ones before outer ones, in one pass.
func calculate(text string) (string, error) {
	if !strings.Contains(text, "$(") {
		return text, nil
	}
	out := make([]byte, 0, len(text))
	var open []parenthesis // within the outermost $(
	for i := range len(text) {
		c := text[i]
		out = append(out, c)
		dollar := c == '(' && i > 0 && text[i-1] == '$'
		switch {
		case dollar, c == '(' && len(open) > 0:
			open = append(open, parenthesis{start: len(out), source: i + 1, dollar: dollar, arithmetic: true})
		case len(open) == 0:
		case c == ')':
			last := open[len(open)-1]
			open = open[:len(open)-1]
			if last.dollar && last.arithmetic {
				result, err := arithmetic(string(out[last.start : len(out)-1]))
				if err != nil {
					return "", err
				}
				out = append(out[:last.start-2], result...)
			} else if !last.arithmetic && len(open) > 0 {
				open[len(open)-1].arithmetic = false
			}
		case c == '$' && i+1 < len(text) && text[i+1] == '(': // a $( within: its result decides
		case strings.IndexByte("0123456789.+-*/% \t\r\n", c) < 0:
			open[len(open)-1].arithmetic = false
		}
	}
	for _, p := range open {
		if p.dollar {
			return "", fmt.Errorf("$(%s has no closing parenthesis", shorten(text[p.source:]))
		}
	}
	return string(out), nil
}

// parenthesis is one that is open.
type parenthesis struct {
	start      int  // behind it in the result
	source     int  // behind it in the text
	dollar     bool // a $ stands before it
	arithmetic bool // nothing but arithmetic stands in it so far
}

// arithmetic calculates.
func arithmetic(text string) (string, error) {
	c := &calculator{rest: text}
	result, err := c.sum()
	if err == nil && c.peek() != 0 {
		err = fmt.Errorf("%q is not expected", c.rest)
	}
	if err != nil {
		return "", fmt.Errorf("$(%s): %w", shorten(text), err)
	}
	return result.String(), nil
}

// value is a whole number or a decimal.
type value struct {
	whole   int64
	decimal float64
	isWhole bool
}

func (v value) String() string {
	if v.isWhole {
		return strconv.FormatInt(v.whole, 10)
	}
	return strconv.FormatFloat(v.decimal, 'f', -1, 64)
}

func (v value) float() float64 {
	if v.isWhole {
		return float64(v.whole)
	}
	return v.decimal
}

// calculator reads and calculates at once, by recursive descent.
type calculator struct {
	rest  string
	depth int
}

// peek returns the next byte that is no space; 0 at the end.
func (c *calculator) peek() byte {
	c.rest = strings.TrimLeft(c.rest, " \t\r\n")
	if c.rest == "" {
		return 0
	}
	return c.rest[0]
}

func (c *calculator) sum() (value, error)     { return c.chain("+-", c.product) }
func (c *calculator) product() (value, error) { return c.chain("*/%", c.operand) }

func (c *calculator) chain(operators string, part func() (value, error)) (value, error) {
	left, err := part()
	for err == nil && c.peek() != 0 && strings.IndexByte(operators, c.peek()) >= 0 {
		op := c.peek()
		c.rest = c.rest[1:]
		var right value
		if right, err = part(); err == nil {
			left, err = apply(op, left, right)
		}
	}
	return left, err
}

func (c *calculator) operand() (value, error) {
	if c.depth++; c.depth > maxNested {
		return value{}, fmt.Errorf("nested more than %d deep", maxNested)
	}
	defer func() { c.depth-- }()
	switch sign := c.peek(); sign {
	case '-', '+':
		c.rest = c.rest[1:]
		v, err := c.operand()
		if err != nil || sign == '+' {
			return v, err
		}
		return apply('-', value{isWhole: true}, v)
	case '(':
		c.rest = c.rest[1:]
		v, err := c.sum()
		if err != nil {
			return value{}, err
		}
		if c.peek() != ')' {
			return value{}, errors.New("an operator is missing")
		}
		c.rest = c.rest[1:]
		return v, nil
	default:
		return c.number()
	}
}

func (c *calculator) number() (value, error) {
	n := 0
	for n < len(c.rest) && strings.IndexByte("0123456789.", c.rest[n]) >= 0 {
		n++
	}
	text := c.rest[:n]
	if n == 0 {
		return value{}, errors.New("a number is missing")
	}
	c.rest = c.rest[n:]
	if whole, err := strconv.ParseInt(text, 10, 64); err == nil {
		return value{whole: whole, isWhole: true}, nil
	}
	decimal, err := strconv.ParseFloat(text, 64)
	if err != nil || !strings.Contains(text, ".") {
		return value{}, fmt.Errorf("%s is not a number that can be calculated with", shorten(text))
	}
	return value{decimal: decimal}, nil
}

var errTooLarge = errors.New("the result is too large")

// apply calculates one step; whole numbers stay whole, and a result that does not fit is an error.
func apply(op byte, left, right value) (value, error) {
	if !left.isWhole || !right.isWhole {
		return applyDecimals(op, left.float(), right.float())
	}
	a, b := left.whole, right.whole
	if (op == '/' || op == '%') && b == 0 {
		return value{}, errors.New("division by zero")
	}
	result, fits := int64(0), true
	switch op {
	case '+':
		result = a + b
		fits = (result > a) == (b > 0)
	case '-':
		result = a - b
		fits = (result < a) == (b > 0)
	case '*':
		result = a * b
		fits = a == 0 || result/a == b && (a != -1 || b != math.MinInt64)
	case '/':
		fits = a != math.MinInt64 || b != -1
		result = a / b
	case '%':
		result = a % b
	}
	if !fits {
		return value{}, errTooLarge
	}
	return value{whole: result, isWhole: true}, nil
}

func applyDecimals(op byte, a, b float64) (value, error) {
	if (op == '/' || op == '%') && b == 0 {
		return value{}, errors.New("division by zero")
	}
	var result float64
	switch op {
	case '+':
		result = a + b
	case '-':
		result = a - b
	case '*':
		result = a * b
	case '/':
		result = a / b
	case '%':
		result = math.Mod(a, b)
	}
	if math.IsInf(result, 0) || math.IsNaN(result) {
		return value{}, errTooLarge
	}
	return value{decimal: result}, nil
}

// shorten cuts a long text for a message.
func shorten(text string) string {
	const limit = 60
	if len(text) > limit {
		return strings.ToValidUTF8(text[:limit], "") + "..."
	}
	return text
}

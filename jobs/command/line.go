package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Command is one program with its arguments: text that is split at spaces (or given to a shell), or a list. In JSON it is a
// string or an array of strings.
type Command struct {
	text string
	argv []string
}

// Line is a command as text: words are separated by spaces, '...' and "..." keep spaces and each other. There are no
// variables, no escapes and no pipes, unless the job says Shell.
func Line(text string) Command { return Command{text: text} }

// Argv is a command as a list: the program and its arguments as they are.
func Argv(program string, args ...string) Command {
	return Command{argv: append([]string{program}, args...)}
}

// String shows the command to a person.
func (c Command) String() string {
	if c.argv != nil {
		return fmt.Sprintf("%q", c.argv)
	}
	return c.text
}

// IsZero tells encoding/json that there is no command.
func (c Command) IsZero() bool { return c.isZero() }

func (c Command) isZero() bool { return c.text == "" && c.argv == nil }

func (c Command) check(shell bool) error {
	switch {
	case c.argv != nil && shell:
		return errors.New("shell needs the command as text, not as a list")
	case strings.Contains(c.text, "\x00") || strings.Contains(strings.Join(c.argv, ""), "\x00"):
		return errors.New("holds a NUL byte")
	case shell:
		if strings.TrimSpace(c.text) == "" {
			return errors.New("is empty")
		}
		return nil
	}
	argv, err := c.split()
	if err == nil && (len(argv) == 0 || argv[0] == "") {
		err = errors.New("names no program")
	}
	return err
}

// split returns the program and its arguments.
func (c Command) split() ([]string, error) {
	if c.argv != nil {
		return c.argv, nil
	}
	return splitLine(c.text)
}

// splitLine splits at spaces, tabs and line ends outside quotes.
func splitLine(text string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord, quote, opened := false, byte(0), 0
	for at := range len(text) {
		switch r := text[at]; {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteByte(r)
		case r == '\'' || r == '"':
			quote, opened, inWord = r, at, true
		case r == ' ' || r == '\t' || r == '\n' || r == '\r':
			if inWord {
				words = append(words, word.String())
				word.Reset()
			}
			inWord = false
		default:
			word.WriteByte(r)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("the quote %c at offset %d is not closed in %q; give a list to pass quotes on", quote, opened, text)
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}

// MarshalJSON writes a string or an array.
func (c Command) MarshalJSON() ([]byte, error) {
	if c.argv != nil {
		return json.Marshal(c.argv)
	}
	return json.Marshal(c.text)
}

// UnmarshalJSON reads a string or an array of strings.
func (c *Command) UnmarshalJSON(data []byte) error {
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return err
	}
	switch v := v.(type) {
	case string:
		*c = Command{text: v}
		return nil
	case []any:
		argv := make([]string, len(v))
		for i := range v {
			s, ok := v[i].(string)
			if !ok {
				return fmt.Errorf("command: element %d is not a string", i+1)
			}
			argv[i] = s
		}
		*c = Command{argv: argv}
		return nil
	}
	return errors.New("command: want a string or an array of strings")
}

package flow1

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/magiconair/properties"

	"github.com/peltonq/pelton/jobs/flow/internal/draft"
	"github.com/peltonq/pelton/jobs/flow/internal/graph"
)

// parse reads the text of a .properties or .job file; what is wrong with it goes into the report, as far as possible with lines.
func parse(file string, data []byte, report *draft.Report) (graph.Config, draft.Lines) {
	fault := func(line int, format string, args ...any) {
		report.Fault(draft.Place{File: file, Line: line}, format, args...)
	}
	if !utf8.Valid(data) {
		fault(lineOfInvalid(data), "is not UTF-8 text; save it as UTF-8")
		return nil, nil
	}
	text := strings.TrimPrefix(string(data), "\ufeff")
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	if at := strings.IndexByte(text, 0); at >= 0 {
		fault(1+strings.Count(text[:at], "\n"), "holds a NUL character")
		return nil, nil
	}
	text, lines := keys(text, file, report)
	loader := properties.Loader{Encoding: properties.UTF8, DisableExpansion: true}
	p, err := loader.LoadBytes([]byte(text))
	if err != nil {
		line, reason := explain(err)
		fault(line, "%s", reason)
		return nil, nil
	}
	config := graph.Config(p.Map())
	for key, value := range config {
		switch {
		case strings.Contains(key+value, "\x00"):
			fault(lines[key], "%s holds a NUL character", key)
		case strings.ContainsRune(key+value, utf8.RuneError) && !strings.ContainsRune(text, utf8.RuneError):
			fault(lines[key], "%s holds half a character as \\uXXXX; write the character itself", key)
		}
	}
	return config, lines
}

func lineOfInvalid(data []byte) int {
	line := 1
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		if r == utf8.RuneError && n == 1 {
			break
		}
		if r == '\n' {
			line++
		}
		data = data[n:]
	}
	return line
}

var located = regexp.MustCompile(`^properties: Line (\d+): (?s:(.*))$`)

// explain takes the line out of an error of the library.
func explain(err error) (line int, reason string) {
	reason = err.Error()
	if m := located.FindStringSubmatch(reason); m != nil {
		line, _ = strconv.Atoi(m[1]) // digits; if there are too many, there is no line
		reason = m[2]
	}
	return line, "cannot be parsed: " + strings.TrimPrefix(reason, "properties: ")
}

// keys finds the line of each key, which the library does not tell, and takes lines out that have a value but no key, which it
// does not take well.
func keys(text, file string, report *draft.Report) (kept string, lines draft.Lines) {
	lines = draft.Lines{}
	physical := strings.Split(text, "\n")
	for at := 0; at < len(physical); at++ {
		start, line := at, strings.TrimLeft(physical[at], " \t\f")
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		for at+1 < len(physical) && continues(physical[at]) {
			at++
		}
		switch key := keyOf(line); {
		case key == "":
			report.Fault(draft.Place{File: file, Line: start + 1}, "a value without a key, want key=value")
			clear(physical[start : at+1])
		case lines[key] > 0:
			report.Note(draft.Place{File: file, Line: start + 1}, "%s is written twice; this one counts, not that of line %d", key, lines[key])
			fallthrough
		default:
			lines[key] = start + 1
		}
	}
	return strings.Join(physical, "\n"), lines
}

// continues tells whether a line goes on in the next: it ends with an odd number of backslashes.
func continues(line string) bool {
	return (len(line)-len(strings.TrimRight(line, `\`)))%2 == 1
}

// keyOf returns the key that a line begins with, its escapes taken out where they are plain.
func keyOf(line string) string {
	var key strings.Builder
	for at := 0; at < len(line); at++ {
		switch line[at] {
		case ' ', '\t', '\f', ':', '=':
			return key.String()
		case '\\':
			if at++; at == len(line) {
				return key.String() + `\`
			}
		}
		key.WriteByte(line[at])
	}
	return key.String()
}

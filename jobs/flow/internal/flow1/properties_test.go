package flow1

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/peltonq/pelton/jobs/flow/internal/draft"
)

// The library reads with a goroutine, which must not stay behind whatever the text is.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestProperties(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"separators":            {"a=1\nb: 2\nc 3\n d\t=\t4\ne", `a@1="1" b@2="2" c@3="3" d@4="4" e@5=""`},
		"ends of lines":         {"a=1\r\nb=2\rc=3\n", `a@1="1" b@2="2" c@3="3"`},
		"byte order mark":       {"\ufeffa=1", `a@1="1"`},
		"comments":              {"# x=1\n  ! y=2\na=#1 ! 2", `a@3="#1 ! 2"`},
		"a line goes on":        {"a=1 \\\r\n   2\\\n3\nb=4", `a@1="1 23" b@4="4"`},
		"a comment does not":    {"#x\\\na=1", `a@2="1"`},
		"backslashes":           {`a=C:\\x\\` + "\nb=2", `a@1="C:\\x\\" b@2="2"`},
		"escapes":               {`a\:\=\ b=\u00fc\t\z`, `a:= b@1="ü\tz"`},
		"spaces at the end":     {"a=1  \n", `a@1="1  "`},
		"parameters":            {"a=${a} ${b:c} $(x)", `a@1="${a} ${b:c} $(x)"`},
		"twice":                 {"a=1\nb=2\na=3", `note 3: a is written twice; this one counts, not that of line 1; a@3="3" b@2="2"`},
		"no key":                {"a=1\n=2\\\n  3\n:\nb=4", "fault 2: a value without a key, want key=value; fault 4: a value without a key, want key=value; a@1=\"1\" b@5=\"4\""},
		"broken escape":         {"a=1\nb=\\u12", "fault 2: cannot be parsed: invalid unicode literal"},
		"backslash at the end":  {"a=1\nb=2\\", "fault 2: cannot be parsed: premature EOF"},
		"half a character":      {`a=\ud83d\ude00`, `fault 1: a holds half a character as \uXXXX; write the character itself; a@1="` + "\ufffd\ufffd\""},
		"NUL":                   {"a=1\nb=\x00", "fault 2: holds a NUL character"},
		"NUL as an escape":      {`a=\u0000`, `fault 1: a holds a NUL character; a@1="\x00"`},
		"not UTF-8":             {"a=1\nb=\xe4", "fault 2: is not UTF-8 text; save it as UTF-8"},
		"empty":                 {"", ""},
		"a key that goes on":    {"ab\\", "fault 1: cannot be parsed: premature EOF"},
		"only a separator":      {"=", "fault 1: a value without a key, want key=value"},
		"a cycle of parameters": {"a=${b}\nb=${a}", `a@1="${b}" b@2="${a}"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report := &draft.Report{}
			config, lines := parse("x.job", []byte(c.text), report)
			var got []string
			for _, f := range report.Faults {
				got = append(got, fmt.Sprintf("fault %d: %s", f.Line, f.Reason))
			}
			for _, n := range report.Notes {
				got = append(got, fmt.Sprintf("note %d: %s", n.Line, n.Reason))
			}
			if len(config) > 0 {
				got = append(got, pairs(config, lines))
			}
			if text := strings.Join(got, "; "); text != c.want {
				t.Errorf("got  %s\nwant %s", text, c.want)
			}
		})
	}
}

func pairs(config map[string]string, lines draft.Lines) string {
	var list []string
	for key, value := range maps.All(config) {
		list = append(list, fmt.Sprintf("%s@%d=%q", key, lines[key], value))
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

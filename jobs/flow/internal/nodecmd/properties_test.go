package nodecmd

import (
	"maps"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"
)

func TestPropertiesAsJavaWritesThem(t *testing.T) {
	t.Parallel()
	got := string(encodeProperties(map[string]string{
		"plain":       "a b",
		"a key:=#!\\": "  two first, last ",
		"lines":       "one\ntwo\r\tthree\f\x00",
		"größe":       "日本 😀",
		"empty":       "",
		"env.X":       "k=v: #no! C:\\dir",
	}))
	want := strings.Join([]string{
		`a\ key\:\=\#\!\\=\  two first, last `,
		`empty=`,
		`env.X=k\=v\: \#no\! C\:\\dir`,
		`gr\u00F6\u00DFe=\u65E5\u672C \uD83D\uDE00`,
		`lines=one\ntwo\r\tthree\f\u0000`,
		`plain=a b`,
	}, "\n") + "\n"
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// readProperties reads what a Java reader would, by its own rules: it knows nothing of how the text was written.
func readProperties(t *testing.T, text string) map[string]string {
	t.Helper()
	read := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimLeft(strings.TrimSuffix(line, "\n"), " \t\f")
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		var key []uint16
		var units []uint16
		inKey := true
		for i := 0; i < len(line); i++ {
			c := line[i]
			switch {
			case c == '\\' && i+1 < len(line):
				i++
				switch c = line[i]; c {
				case 'n':
					c = '\n'
				case 'r':
					c = '\r'
				case 't':
					c = '\t'
				case 'f':
					c = '\f'
				case 'u':
					unit, err := strconv.ParseUint(line[i+1:i+5], 16, 16)
					if err != nil {
						t.Fatal(err)
					}
					units = append(units, uint16(unit))
					i += 4
					continue
				}
				units = append(units, uint16(c))
			case inKey && strings.IndexByte("=: \t\f", c) >= 0:
				key, units, inKey = units, nil, false
				rest := strings.TrimLeft(line[i:], " \t\f")
				if rest != "" && (rest[0] == '=' || rest[0] == ':') {
					rest = strings.TrimLeft(rest[1:], " \t\f")
				}
				i = len(line) - len(rest) - 1
			default:
				units = append(units, uint16(c))
			}
		}
		if inKey {
			key, units = units, nil
		}
		read[string(utf16.Decode(key))] = string(utf16.Decode(units))
	}
	return read
}

func FuzzProperties(f *testing.F) {
	f.Add("key", "value", "other", "\\u00e4\\")
	f.Add(" a=b: #c", " \t\n\r\f!", "", " ")
	f.Add("\u2028é😀", "\x7f\x00\u0085", "#", "=")
	f.Fuzz(func(t *testing.T, k1, v1, k2, v2 string) {
		want := map[string]string{}
		for k, v := range map[string]string{k1: v1, k2: v2} {
			if !utf8.ValidString(k) || !utf8.ValidString(v) || k == "" {
				return // a line that begins with = has an empty key for Java, but no node has such a property
			}
			want[k] = v
		}
		text := string(encodeProperties(want))
		if got := readProperties(t, text); !maps.Equal(got, want) {
			t.Errorf("%q was read as %q from\n%s", want, got, text)
		}
	})
}

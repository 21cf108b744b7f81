package periodic

import "testing"

// An edition is read as it was written, and nothing else is one.
func TestEditionAsText(t *testing.T) {
	t.Parallel()
	for _, e := range []Edition{{1, 1}, {12, 7}, {1<<63 - 1, 1<<31 - 1}} {
		var read Edition
		if err := read.UnmarshalText([]byte(e.String())); err != nil || read != e {
			t.Errorf("%v was read as %v, %v", e, read, err)
		}
	}
	for _, text := range []string{"", "7", "0.0", "0.1", "1.0", "1.", ".1", "-1.1", "1.-1", "01.1", "1.01", "+1.1", "1.1.1", "1.1 ", "9223372036854775808.1"} {
		var read Edition
		if err := read.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was read as %v", text, read)
		}
	}
}

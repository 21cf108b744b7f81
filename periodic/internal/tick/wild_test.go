package tick

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/peltonq/pelton/periodic/internal/expr"
)

// wildZone makes a zone whose clock is changed at the given instants, to the given offsets.
func wildZone(t fataler, changes []int32, offsets []int32) *time.Location {
	t.Helper()
	data := []byte("TZif\x00")
	data = append(data, make([]byte, 15)...)
	for _, count := range []int{0, 0, 0, len(changes), len(offsets), 4} {
		data = binary.BigEndian.AppendUint32(data, uint32(count))
	}
	for _, at := range changes {
		data = binary.BigEndian.AppendUint32(data, uint32(at))
	}
	for i := range changes {
		data = append(data, byte(i+1)) // the first offset is that before all changes
	}
	for _, offset := range offsets {
		data = binary.BigEndian.AppendUint32(data, uint32(offset))
		data = append(data, 0, 0)
	}
	data = append(data, "WLD\x00"...)
	loc, err := time.LoadLocationFromTZData("Wild", data)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

// TestWildZones: the rule holds where a clock is changed every few hours, so that it shows a time three times, or leaps over it twice.
func TestWildZones(t *testing.T) {
	t.Parallel()
	thrice := false
	rapid.Check(t, func(t *rapid.T) {
		const start = 1_800_000_000
		changes := make([]int32, rapid.IntRange(1, 12).Draw(t, "changes"))
		offsets := make([]int32, len(changes)+1)
		at := int32(start + reach + 3600)
		for i := range offsets {
			offsets[i] = 600 * rapid.Int32Range(-14*6, 14*6).Draw(t, "offset")
			if i < len(changes) {
				at += 600 * rapid.Int32Range(1, 30*6).Draw(t, "hours")
				changes[i] = at
			}
		}
		loc := wildZone(t, changes, offsets)
		until := int64(at) + reach + 30*3600
		text := rapid.SampledFrom([]string{"*/10 * * * *", "0 * * * *", "30 2 * * *", "0 0 12 ? * MON", "0 10 */3 1,15,16,17 1 ? 2027", "20 4 17 1 *"}).Draw(t, "text")
		e, err := expr.Parse(text, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		rule := rules(t)
		want := naive(e, loc, rule, start, until, 600)
		src := New(e, loc, rule, time.Time{})
		got := src.Between(nil, After(instant(start+reach-1)), instant(until-reach-1), 1_000_000)
		if !slices.Equal(got, want) {
			t.Fatalf("%q by %v, changes %v, offsets %v:\n%v\nwant\n%v", text, rule, changes, offsets, written(got, loc), written(want, loc))
		}
		runsOf(t, src, want, instant(start+reach), instant(until-reach-1))
		passes := map[time.Time]int{}
		for _, tick := range want {
			passes[tick.Local]++
			thrice = thrice || passes[tick.Local] == 3
		}
	})
	if !thrice && !testing.Short() { // with a fifth of the draws it may be so
		t.Error("no clock showed a time three times")
	}
}

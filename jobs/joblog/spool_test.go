package joblog

import (
	"bytes"
	"testing"
	"time"
)

// FuzzSpool cuts a text at arbitrary places into writes to two streams, takes and drops now and then, and puts together what
// came out.
func FuzzSpool(f *testing.F) {
	f.Add([]byte("grüße\x00\xff"), []byte{1, 2, 200, 3, 90}, 4, int64(5))
	f.Add(bytes.Repeat([]byte("日本"), 300), []byte{7, 255, 0, 254, 253}, 64, int64(100))
	f.Fuzz(func(t *testing.T, data, steps []byte, chunkBytes int, head int64) {
		chunkBytes = 1 + int(uint(chunkBytes)%70)
		s := &spool{headLeft: max(0, head%1000)}
		headWant := min(s.headLeft, int64(len(data)))
		out := map[byte][]byte{}
		want := map[byte][]byte{}
		headGot, bytesGot := int64(0), 0
		take := func(room int) {
			var batch []*chunk
			s.take(&batch, room, 1000)
			for _, c := range batch {
				if len(c.data) == 0 || len(c.data) > chunkBytes {
					t.Fatalf("chunk of %d bytes, limit %d", len(c.data), chunkBytes)
				}
				if c.pos != int64(len(out[c.stream])) {
					t.Fatalf("stream %c: chunk at %d after %d bytes", c.stream, c.pos, len(out[c.stream]))
				}
				out[c.stream] = append(out[c.stream], c.data...)
				bytesGot += len(c.data)
				if !c.tail {
					headGot += int64(len(c.data))
				}
				s.landed(c)
			}
		}
		for i, rest := 0, data; len(rest) > 0; i++ {
			step := byte(3)
			if len(steps) > 0 {
				step = steps[i%len(steps)]
			}
			kind := Stdout
			if step%2 == 1 {
				kind = Stderr
			}
			n := min(len(rest), 1+int(step)/2)
			want[kind] = append(want[kind], rest[:n]...)
			for part := rest[:n]; len(part) > 0; {
				part = part[s.write(kind, part, chunkBytes, time.Time{}):]
			}
			rest = rest[n:]
			if step > 200 {
				take(int(step))
			}
		}
		for !s.idle() {
			take(chunkBytes)
		}
		if !bytes.Equal(out[Stdout], want[Stdout]) || !bytes.Equal(out[Stderr], want[Stderr]) {
			t.Fatalf("got %q, want %q", out, want)
		}
		if headGot != headWant || bytesGot != len(data) || s.bytes != 0 {
			t.Fatalf("%d bytes of head, want %d; %d of %d bytes, %d left", headGot, headWant, bytesGot, len(data), s.bytes)
		}
	})
}

func TestIDsRiseThoughTheClockDoesNot(t *testing.T) {
	t.Parallel()
	s := &spool{jobID: 100<<idBits | 5}
	last := int64(0)
	for _, second := range []int64{99 << idBits, 101 << idBits, 101 << idBits, 100 << idBits, 103 << idBits} {
		c := &chunk{}
		s.number(c, second)
		if c.id <= last || c.id < 100<<idBits || c.id < second {
			t.Fatalf("id %d after %d in second %d", c.id, last, second)
		}
		last = c.id
	}
}

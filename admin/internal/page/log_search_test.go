package page_test

import (
	"fmt"
	"html"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/peltonq/pelton/admin/internal/page"
	"github.com/peltonq/pelton/admin/internal/page/pagetest"
	"github.com/peltonq/pelton/jobs/joblog"
)

// searched follows a search whose time was up, as it is on a busy machine, and returns its last answer with what all of them show.
func searched(t *testing.T, v *pagetest.Visitor, path string) pagetest.Answer {
	t.Helper()
	all := ""
	for {
		a := v.Want(200, path)
		all += a.Body
		link := regexp.MustCompile(`href="([^"]*)">Search further`).FindStringSubmatch(a.Body)
		if link == nil {
			a.Body = all
			return a
		}
		path = html.UnescapeString(link[1])
	}
}

// shows tells what is missing on a page.
func shows(t *testing.T, a pagetest.Answer, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(a.Body, text) {
			t.Errorf("%q is not in it: %s", text, a.Body)
		}
	}
}

// Wherever a search stops and goes on, it finds each line once, as one that does not stop; and it reads little twice.
func TestLogSearchInPieces(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		var chunks []joblog.Chunk
		var want []string
		streams := map[byte]*strings.Builder{joblog.Stdout: {}, joblog.Stderr: {}, joblog.LogLines: {}}
		for stream, text := range streams {
			for i := range random.IntN(60) {
				line := strings.Repeat("hay", random.IntN(5))
				if random.IntN(3) == 0 {
					line += fmt.Sprintf("Nädle %c%d", stream, i) + strings.Repeat("hay nädle", random.IntN(3))
					want = append(want, line)
				}
				text.WriteString(line + "\n")
			}
		}
		places := map[byte]int{}
		for id := int64(1); ; id++ {
			var stream byte
			for _, s := range []byte{joblog.Stdout, joblog.Stderr, joblog.LogLines} {
				if places[s] < streams[s].Len() && (stream == 0 || random.IntN(2) == 0) {
					stream = s
				}
			}
			if stream == 0 {
				break
			}
			pos := places[stream]
			end := min(streams[stream].Len(), pos+1+random.IntN(40))
			chunks = append(chunks, joblog.Chunk{ID: id, Stream: stream, Pos: int64(pos), Data: []byte(streams[stream].String()[pos:end])})
			places[stream] = end
		}
		slices.Sort(want)
		for _, each := range []int{1, 2, 7, len(chunks) + 1} {
			got, read := page.SearchInPieces(chunks, "NÄDLE", each)
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d, pieces of %d chunks: found %q, want %q", seed, each, got, want)
			}
			if each > len(chunks) && read != len(chunks) {
				t.Errorf("seed %d: %d chunks were read, there are %d", seed, read, len(chunks))
			}
		}
	}
}

// A line that was not kept whole is no line with what follows the gap.
func TestLogSearchOverAGap(t *testing.T) {
	t.Parallel()
	chunks := []joblog.Chunk{
		{ID: 1, Stream: joblog.Stdout, Pos: 0, Data: []byte("a nee")},
		{ID: 2, Stream: joblog.Stdout, Pos: 100, Data: []byte("dle\n")},
		{ID: 3, Stream: joblog.Stdout, Pos: 104, Data: []byte("nee")},
		{ID: 4, Stream: joblog.Stdout, Pos: 107, Data: []byte("dle\x1b[1m too\x1b[0m\r\nb needle")},
		{ID: 5, Stream: joblog.Stdout, Pos: 1000, Data: []byte(" that is another line")},
	}
	for _, each := range []int{1, 2, 10} {
		if got, _ := page.SearchInPieces(chunks, "needle", each); !slices.Equal(got, []string{"needle too", "b needle"}) {
			t.Errorf("pieces of %d chunks: found %q", each, got)
		}
	}
}

func TestLoweredKeepsPlaces(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"AbC Ä ß Σ": "abc ä ß σ", "\u0130\u212a \xff\xc3": "\u0130\u212a \xff\xc3", "": ""} {
		if got := string(page.Lowered(nil, []byte(text))); got != want || len(got) != len(text) {
			t.Errorf("%q is %q in small letters, want %q", text, got, want)
		}
	}
}

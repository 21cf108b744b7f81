package upload_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/peltonq/pelton/admin/internal/upload"
)

func TestTake(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	f, err := upload.Take(strings.NewReader("hello"))
	if err != nil || f.Size != 5 {
		t.Fatalf("%+v, %v", f, err)
	}
	text := make([]byte, 5)
	if _, err := f.ReadAt(text, 0); err != nil || string(text) != "hello" {
		t.Errorf("%q, %v", text, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if _, err := upload.Take(strings.NewReader("")); !errors.Is(err, upload.ErrEmpty) {
		t.Error(err)
	}
	broken := errors.New("broken")
	if _, err := upload.Take(io.MultiReader(strings.NewReader("x"), failing{broken})); !errors.Is(err, broken) {
		t.Error(err)
	}
	if _, err := upload.Take(endless{}); !errors.Is(err, upload.ErrTooLarge) {
		t.Error(err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// Nobody has more than one upload, and few are under way.
func TestGate(t *testing.T) {
	t.Parallel()
	var g upload.Gate
	leave, err := g.Enter("a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Enter("a"); !errors.Is(err, upload.ErrBusy) {
		t.Errorf("a second one of the same user: %v", err)
	}
	for _, user := range []string{"b", "c", "d"} {
		if _, err := g.Enter(user); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := g.Enter("e"); !errors.Is(err, upload.ErrBusy) {
		t.Errorf("one too many: %v", err)
	}
	leave()
	if _, err := g.Enter("e"); err != nil {
		t.Errorf("after one has left: %v", err)
	}
}

package bundle_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/peltonq/pelton/jobs/flow/internal/bundle"
)

// entry is what a zip of a test holds.
type entry struct {
	name string
	data string
	mode fs.FileMode
}

func zipOf(t testing.TB, entries ...entry) *bytes.Reader {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		if e.mode != 0 {
			h.SetMode(e.mode)
		}
		f, err := w.CreateHeader(h)
		if err == nil {
			_, err = io.WriteString(f, e.data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(b.Bytes())
}

// open returns the listing of a zip, or its faults.
func open(t testing.TB, limits bundle.Limits, entries ...entry) string {
	t.Helper()
	z := zipOf(t, entries...)
	b, faults, err := bundle.Zip(z, z.Size(), limits)
	if err != nil {
		return "error: " + err.Error()
	}
	var text strings.Builder
	for _, f := range faults {
		fmt.Fprintln(&text, f)
	}
	if len(faults) == 0 {
		text.WriteString(listing(t, b))
	}
	return text.String()
}

// listing reads every file and compares it with its hash.
func listing(t testing.TB, b *bundle.Bundle) string {
	t.Helper()
	var text strings.Builder
	for i := range b.Files {
		f := &b.Files[i]
		data, err := f.Read()
		if err != nil {
			t.Fatal(err)
		}
		if int64(len(data)) != f.Size || sha256.Sum256(data) != f.SHA256 {
			t.Errorf("%s: contents do not fit size and hash", f.Path)
		}
		fmt.Fprintf(&text, "%s %v %q\n", f.Path, f.Mode, data)
	}
	for _, h := range b.Hidden {
		fmt.Fprintf(&text, "hidden %s\n", h)
	}
	return text.String()
}

func TestZip(t *testing.T) {
	t.Parallel()
	small := bundle.Limits{Files: 3, File: 10, Total: 15}
	for name, c := range map[string]struct {
		limits  bundle.Limits
		entries []entry
		want    string
	}{
		"in order, modes": {
			entries: []entry{{"b", "2", 0o600}, {"a/x.sh", "1", 0o700}, {"a/", "", 0}},
			want:    "a/x.sh -rwxr-xr-x \"1\"\nb -rw-r--r-- \"2\"\n",
		},
		"top directory": {
			entries: []entry{{"top/", "", fs.ModeDir | 0o755}, {"top/a", "1", 0}, {"top/sub/b", "2", 0}, {"__MACOSX/top/._a", "x", 0}},
			want:    "a -rw-r--r-- \"1\"\nsub/b -rw-r--r-- \"2\"\n",
		},
		"only one top directory is taken off": {
			entries: []entry{{"top/sub/a", "1", 0}},
			want:    "sub/a -rw-r--r-- \"1\"\n",
		},
		"dot files": {
			entries: []entry{{"a", "1", 0}, {".env", "2", 0}, {"sub/.DS_Store", "3", 0}, {".hg/x", "4", 0}},
			want:    "a -rw-r--r-- \"1\"\nhidden .env\nhidden .hg/x\n",
		},
		"empty": {want: ""},
		"slip": {
			entries: []entry{{"../a", "", 0}, {"a/../../b", "", 0}, {"/etc/passwd", "", 0}, {"c:/x", "", 0}, {`..\w`, "", 0}},
			want: `../a: the path leads out of the upload
a/../../b: the path leads out of the upload
/etc/passwd: the path is absolute
c:/x: the path is absolute
..\w: the name holds a backslash; folders are separated by slashes
`,
		},
		"names that are not plain": {
			entries: []entry{{"./", "", 0}, {"./p//", "", 0}, {"./p/a.job", "1", 0}, {"p//b.job", "2", 0}, {"p/./sub/c", "3", 0}, {"./.env", "4", 0}, {"p//./.DS_Store", "5", 0}},
			want:    "a.job -rw-r--r-- \"1\"\nb.job -rw-r--r-- \"2\"\nsub/c -rw-r--r-- \"3\"\nhidden .env\n",
		},
		"names that are not plain, and slip": {
			entries: []entry{{"./../a", "", 0}, {"./a/..", "", 0}, {"//a", "", 0}, {".", "x", 0}, {"a/..//", "", 0}},
			want: "./../a: the path leads out of the upload\n./a/..: the path leads out of the upload\n//a: the path is absolute\n" +
				".: the name is that of a directory\na/..//: the path leads out of the upload\n",
		},
		"one file by two names": {
			entries: []entry{{"p/a", "1", 0}, {"./p//a", "2", 0}},
			want:    "a: duplicate name in the upload\n",
		},
		"slip by a directory": {
			entries: []entry{{"../", "", 0}, {"a", "", 0}},
			want:    "../: the path leads out of the upload\n",
		},
		"odd names": {
			entries: []entry{{"a\x00b", "", 0}, {"a\xffb", "", 0}, {strings.Repeat("x/", 501) + "x", "", 0}},
			want: "a\x00b: the name holds a control character\na\xffb: the name is not UTF-8\n" +
				strings.Repeat("x/", 501) + "x: the path has 1003 bytes, at most 1000 are allowed\n",
		},
		"links and devices": {
			entries: []entry{{"link", "/etc/passwd", fs.ModeSymlink | 0o777}, {"pipe", "", fs.ModeNamedPipe}},
			want:    "link: is a symbolic link; an upload may hold files and directories only\npipe: is neither a file nor a directory\n",
		},
		"names that clash": {
			entries: []entry{{"a", "1", 0}, {"a", "2", 0}, {"b", "", 0}, {"b/c/d", "", 0}},
			want:    "a: duplicate name in the upload\nb/c/d: b is a file and a directory\n",
		},
		"too many files": {
			limits: small, entries: []entry{{"a", "", 0}, {"b", "", 0}, {"c", "", 0}, {"d", "", 0}, {"e", "", 0}},
			want: "more than 3 files\n",
		},
		"too large a file": {
			limits: small, entries: []entry{{"a", "12345678901", 0}},
			want: "a: has 11 bytes, at most 10 are allowed\n",
		},
		"too much together": {
			limits: small, entries: []entry{{"a", "1234567890", 0}, {"b", "123456", 0}},
			want: "the files have 16 bytes together, at most 15 are allowed\n",
		},
		"just what is allowed": {
			limits: small, entries: []entry{{"a", "1234567890", 0}, {"b", "12345", 0}},
			want: "a -rw-r--r-- \"1234567890\"\nb -rw-r--r-- \"12345\"\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := open(t, c.limits, c.entries...); got != c.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, c.want)
			}
		})
	}
}

// A zip whose header says that a file is small is not believed.
func TestZipThatLies(t *testing.T) {
	t.Parallel()
	z := zipOf(t, entry{name: "bomb", data: strings.Repeat("0", 1<<20)})
	data := make([]byte, z.Size())
	if _, err := z.ReadAt(data, 0); err != nil {
		t.Fatal(err)
	}
	at := bytes.LastIndex(data, []byte("PK\x01\x02")) + 24 // the size in the directory
	copy(data[at:], []byte{100, 0, 0, 0})
	b, faults, err := bundle.Zip(bytes.NewReader(data), z.Size(), bundle.Limits{File: 1000})
	if err != nil || len(faults) != 1 || faults[0].File != "bomb" {
		t.Fatalf("faults %v, error %v", faults, err)
	}
	if _, err := b.Files[0].Read(); !errors.Is(err, bundle.ErrFault) {
		t.Errorf("its file is read: %v", err)
	}
}

// What is wrong with some files does not keep the others from being read, each by the name that it would have without faults.
func TestSoundFilesOfABadUpload(t *testing.T) {
	t.Parallel()
	z := zipOf(
		t, entry{"p/a", "1", 0}, entry{"p/link", "a", fs.ModeSymlink | 0o777}, entry{"../x", "", 0},
		entry{"p/a", "2", 0}, entry{"p/large", strings.Repeat("0", 1000), 0}, entry{"p/sub/b", "3", 0},
	)
	b, faults, err := bundle.Zip(z, z.Size(), bundle.Limits{File: 100})
	if err != nil {
		t.Fatal(err)
	}
	const want = "[link: is a symbolic link; an upload may hold files and directories only ../x: the path leads out of the upload " +
		"large: has 1000 bytes, at most 100 are allowed a: duplicate name in the upload]"
	if got := fmt.Sprint(faults); got != want {
		t.Errorf("faults\n got %s\nwant %s", got, want)
	}
	var got strings.Builder
	for i := range b.Files {
		data, err := b.Files[i].Read()
		fmt.Fprintf(&got, "%s %q %v\n", b.Files[i].Path, data, errors.Is(err, bundle.ErrFault))
	}
	if want := "a \"1\" false\nlarge \"\" true\nlink \"\" true\nsub/b \"3\" false\n"; got.String() != want {
		t.Errorf("files\n got %s\nwant %s", got.String(), want)
	}
}

func TestNoZip(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "p.zip")
	if err := os.WriteFile(name, []byte("this is no zip"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, faults, err := bundle.Open(name, bundle.Limits{})
	if !errors.Is(err, zip.ErrFormat) || !strings.Contains(err.Error(), "p.zip: not a zip file") || len(faults) > 0 {
		t.Errorf("faults %v, error %v", faults, err)
	}
	if _, _, err := bundle.Open(name+"x", bundle.Limits{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a path that does not exist: %v", err)
	}
}

func TestDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, mode := range map[string]fs.FileMode{"b.sh": 0o755, "a": 0o640, "sub/c": 0o644, ".git/config": 0o644, ".venv/x": 0o644} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path, []byte(name), mode)); err != nil {
			t.Fatal(err)
		}
	}
	b, faults, err := bundle.Open(dir, bundle.Limits{})
	if err != nil || len(faults) > 0 {
		t.Fatal(err, faults)
	}
	want := "a -rw-r--r-- \"a\"\nb.sh -rwxr-xr-x \"b.sh\"\nsub/c -rw-r--r-- \"sub/c\"\nhidden .venv\n"
	if got := listing(t, b); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}

	// What is changed after it was hashed is not taken for what was hashed.
	for _, text := range []string{"A", "a longer one", ""} {
		if err := os.WriteFile(filepath.Join(dir, "a"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Files[0].Read(); !errors.Is(err, bundle.ErrChanged) {
			t.Errorf("contents changed to %q: %v", text, err)
		}
	}
	// Nor is it read to an end that may never come.
	if err := os.WriteFile(filepath.Join(dir, "a"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := b.Files[0].Open()
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, r); n > b.Files[0].Size || !errors.Is(err, bundle.ErrChanged) {
		t.Errorf("%d bytes of a file of %d were read: %v", n, b.Files[0].Size, err)
	}
	if err := errors.Join(r.Close(), b.Close()); err != nil {
		t.Error(err)
	}

	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	_, faults, err = bundle.Open(dir, bundle.Limits{})
	if err != nil || len(faults) != 1 || faults[0].File != "link" {
		t.Errorf("a symbolic link: faults %v, error %v", faults, err)
	}
}

// The same files are the same bundle, however they come.
func TestDirectoryAndZipAgree(t *testing.T) {
	t.Parallel()
	fsys := fstest.MapFS{
		"top/z.job": {Data: []byte("type=noop"), Mode: 0o644}, "top/bin/x": {Data: []byte("#!"), Mode: 0o755}, "top/a-b": {Mode: 0o644},
	}
	dir, faults, err := bundle.Dir(fsys, bundle.Limits{})
	if err != nil || len(faults) > 0 {
		t.Fatal(err, faults)
	}
	var buffer bytes.Buffer
	w := zip.NewWriter(&buffer)
	if err := errors.Join(w.AddFS(fsys), w.Close()); err != nil {
		t.Fatal(err)
	}
	zipped, faults, err := bundle.Zip(bytes.NewReader(buffer.Bytes()), int64(buffer.Len()), bundle.Limits{})
	if err != nil || len(faults) > 0 {
		t.Fatal(err, faults)
	}
	if d, z := listing(t, dir), listing(t, zipped); d != z || !strings.HasPrefix(d, "a-b ") {
		t.Errorf("directory:\n%s\nzip:\n%s", d, z)
	}
}

func FuzzZip(f *testing.F) {
	seed := zipOf(f, entry{"top/a.job", "type=noop", 0o644}, entry{"top/b.sh", "echo", 0o755})
	data := make([]byte, seed.Size())
	if _, err := seed.ReadAt(data, 0); err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		limits := bundle.Limits{Files: 100, File: 1 << 16, Total: 1 << 17}
		b, faults, err := bundle.Zip(bytes.NewReader(data), int64(len(data)), limits)
		if err != nil || b == nil {
			return
		}
		total := int64(0)
		for i := range b.Files {
			file := &b.Files[i]
			if total += file.Size; !fs.ValidPath(file.Path) || total > limits.Total || i > 0 && b.Files[i-1].Path >= file.Path {
				t.Fatalf("%q of %d bytes", file.Path, file.Size)
			}
			if _, err := file.Read(); err != nil && (len(faults) == 0 || !errors.Is(err, bundle.ErrFault)) {
				t.Fatal(err)
			}
		}
	})
}

// growing is a file system whose files are longer than their sizes say, as one is that is being written.
type growing struct{ fstest.MapFS }

func (g growing) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := g.MapFS.ReadDir(name)
	for i, e := range entries {
		entries[i] = small{e}
	}
	return entries, err
}

type small struct{ fs.DirEntry }

func (s small) Info() (fs.FileInfo, error) {
	info, err := s.DirEntry.Info()
	return smallInfo{info}, err
}

type smallInfo struct{ fs.FileInfo }

func (smallInfo) Size() int64 { return 1 }

func TestSizesAreCounted(t *testing.T) {
	t.Parallel()
	fsys := growing{fstest.MapFS{"a": {Data: []byte("12345")}, "b": {Data: []byte("12345")}}}
	for limits, want := range map[bundle.Limits]int{
		{File: 5, Total: 10}: 0, {File: 4, Total: 10}: 1, {File: 5, Total: 9}: 1,
	} {
		b, faults, err := bundle.Dir(fsys, limits)
		if err != nil || len(faults) != want || (b == nil) != (want > 0) {
			t.Errorf("%+v: faults %v, error %v", limits, faults, err)
		}
		if b != nil && b.Files[0].Size != 5 {
			t.Errorf("size %d, want what was read", b.Files[0].Size)
		}
	}
}

package bundle

import (
	"archive/zip"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/peltonq/pelton/jobs/flow/internal/graph"
)

// Limits bound an upload. Zero values mean the defaults.
type Limits struct {
	Files int   // how many files it may hold; defaults to 50,000
	File  int64 // bytes of one file; defaults to 1 GiB
	Total int64 // bytes of all files; defaults to 2 GiB
}

func (l Limits) withDefaults() Limits {
	return Limits{Files: cmp.Or(l.Files, 50_000), File: cmp.Or(l.File, 1<<30), Total: cmp.Or(l.Total, 2<<30)}
}

// Bundle is the files of an upload.
type Bundle struct {
	Files  []File   // by path
	Hidden []string // files that begin with a dot and were left out; not those of an operating system

	source io.Closer
}

// File is one file of an upload.
type File struct {
	Path   string
	Mode   fs.FileMode // 0755 or 0644
	Size   int64
	SHA256 [sha256.Size]byte

	open func() (io.ReadCloser, error) // nil: the file has a fault
}

// Errors of files.
var (
	ErrChanged = errors.New("the file was changed while it was being read")
	ErrFault   = errors.New("the file has a fault") // which is among those of the upload
)

// Open reads the zip or directory at a path. Faults say everything that is wrong with it. There is a bundle then too, so that what
// it holds can be checked as well, but only its sound files can be read; there is none if the upload is larger than the limits. The
// bundle must be closed.
func Open(name string, limits Limits) (*Bundle, []graph.Fault, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, nil, err
	}
	if info.IsDir() {
		root, err := os.OpenRoot(name)
		if err != nil {
			return nil, nil, err
		}
		return owned(root)(Dir(root.FS(), limits))
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, nil, err
	}
	b, faults, err := owned(file)(Zip(file, info.Size(), limits))
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return b, faults, err
}

// owned gives a bundle its source to close, or closes it.
func owned(source io.Closer) func(*Bundle, []graph.Fault, error) (*Bundle, []graph.Fault, error) {
	return func(b *Bundle, faults []graph.Fault, err error) (*Bundle, []graph.Fault, error) {
		if b == nil {
			return nil, faults, errors.Join(err, source.Close())
		}
		b.source = source
		return b, faults, err
	}
}

// Close lets go of the zip or directory.
func (b *Bundle) Close() error {
	if b.source == nil {
		return nil
	}
	return b.source.Close()
}

// Open returns the contents of a file. The reader fails at the end with ErrChanged if they are not those that were hashed.
func (f *File) Open() (io.ReadCloser, error) {
	if f.open == nil {
		return nil, ErrFault
	}
	r, err := f.open()
	if err != nil {
		return nil, err
	}
	return &checked{ReadCloser: r, hash: sha256.New(), file: f}, nil
}

// Read returns the contents of a small file.
func (f *File) Read() ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r)
	return data, errors.Join(err, r.Close())
}

type checked struct {
	io.ReadCloser
	hash hash.Hash
	size int64
	file *File
}

func (c *checked) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.size += int64(n)
	if c.size > c.file.Size {
		return 0, ErrChanged
	}
	c.hash.Write(p[:n])
	if errors.Is(err, io.EOF) && [sha256.Size]byte(c.hash.Sum(nil)) != c.file.SHA256 {
		return n, ErrChanged
	}
	return n, err
}

// reader gathers the files of one source.
type reader struct {
	limits Limits
	bundle *Bundle
	faults []graph.Fault
	total  int64
	full   bool // there are more files than are allowed
	large  bool // or more bytes
}

// mostFaults is how many faults are told: who reads more than that has got another file than they think.
const mostFaults = 1000

func (r *reader) fault(name, format string, args ...any) {
	switch {
	case len(r.faults) > mostFaults:
		return
	case len(r.faults) == mostFaults:
		name, format, args = "", "further faults are left out", nil
	}
	r.faults = append(r.faults, graph.Fault{File: name, Reason: fmt.Sprintf(format, args...)})
}

// badPath says what is wrong with a path of an upload, "" if nothing is.
func badPath(name string) string {
	const longest = 1000
	switch {
	case name == "":
		return "the name is empty"
	case !utf8.ValidString(name):
		return "the name is not UTF-8"
	case strings.ContainsFunc(name, unicode.IsControl):
		return "the name holds a control character"
	case strings.Contains(name, `\`):
		return "the name holds a backslash; folders are separated by slashes"
	case strings.HasPrefix(name, "/") || len(name) > 1 && name[1] == ':':
		return "the path is absolute"
	case slices.Contains(strings.Split(name, "/"), ".."):
		return "the path leads out of the upload"
	case len(name) > longest:
		return fmt.Sprintf("the path has %d bytes, at most %d are allowed", len(name), longest)
	}
	return ""
}

// ignored tells whether a file is left out, and whether its author may miss it.
func ignored(name string) (ignored, missed bool) {
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "__MACOSX" || part == ".DS_Store" || part == ".git" || strings.HasPrefix(part, "._"):
			return true, false
		case strings.HasPrefix(part, "."):
			return true, true
		}
	}
	return false, false
}

// entry is a file of an upload.
type entry struct {
	name  string
	mode  fs.FileMode
	size  int64
	fault string // why it cannot be read, "" if it can
	open  func() (io.ReadCloser, error)
}

// add takes one entry up. Its contents are not looked at yet. One with a fault stays in the bundle, so that what refers to it is
// not called wrong too.
func (r *reader) add(e entry) {
	name, mode := e.name, e.mode
	if reason := badPath(name); reason != "" {
		r.fault(name, "%s", reason)
		return
	}
	name = path.Clean(name) // zips may hold ./a and a//b
	if name == "." {
		r.fault(name, "the name is that of a directory")
		return
	}
	if skip, missed := ignored(name); skip {
		if missed {
			r.bundle.Hidden = append(r.bundle.Hidden, name)
		}
		return
	}
	switch {
	case e.fault != "":
	case mode&fs.ModeSymlink != 0:
		e.fault = "is a symbolic link; an upload may hold files and directories only"
	case !mode.IsRegular():
		e.fault = "is neither a file nor a directory"
	case e.size > r.limits.File:
		e.fault = fmt.Sprintf("has %d bytes, at most %d are allowed", e.size, r.limits.File)
	}
	if e.fault != "" {
		r.fault(name, "%s", e.fault)
		e.size, e.open = 0, nil
	}
	if len(r.bundle.Files) == r.limits.Files {
		if !r.full {
			r.fault("", "more than %d files", r.limits.Files)
		}
		r.full = true
		return
	}
	kept := fs.FileMode(0o644)
	if mode&0o111 != 0 {
		kept = 0o755
	}
	r.bundle.Files = append(r.bundle.Files, File{Path: name, Mode: kept, Size: e.size, open: e.open})
	r.total = min(r.total+e.size, 1<<62)
}

// finish orders the files and reads each once. There is no bundle if not all were taken up.
func (r *reader) finish() (*Bundle, []graph.Fault) {
	slices.SortStableFunc(r.bundle.Files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
	if r.total > r.limits.Total {
		r.large = true
		r.fault("", "the files have %d bytes together, at most %d are allowed", r.total, r.limits.Total)
	}
	r.clashes()
	if !r.large {
		r.hash()
	}
	if r.full || r.large {
		return nil, r.faults
	}
	if top := topOf(r.bundle.Files); top != "" {
		for i := range r.bundle.Files {
			r.bundle.Files[i].Path = strings.TrimPrefix(r.bundle.Files[i].Path, top)
		}
		for i := range r.faults {
			r.faults[i].File = strings.TrimPrefix(r.faults[i].File, top)
		}
	}
	slices.Sort(r.bundle.Hidden)
	return r.bundle, r.faults
}

// clashes looks for names that come twice, of which the first is kept, and for files that are directories too.
func (r *reader) clashes() {
	files := make(map[string]bool, len(r.bundle.Files))
	r.bundle.Files = slices.DeleteFunc(r.bundle.Files, func(f File) bool {
		twice := files[f.Path]
		if twice {
			r.fault(f.Path, "duplicate name in the upload")
		}
		files[f.Path] = true
		return twice
	})
	for _, f := range r.bundle.Files {
		for dir := path.Dir(f.Path); dir != "."; dir = path.Dir(dir) {
			if files[dir] {
				r.fault(f.Path, "%s is a file and a directory", dir)
				break
			}
		}
	}
}

// hash reads all files. Their sizes are what is read, whatever the source said before.
func (r *reader) hash() {
	r.total = 0
	buffer := make([]byte, 64<<10)
	for i := range r.bundle.Files {
		f := &r.bundle.Files[i]
		if f.open == nil {
			continue
		}
		left := min(r.limits.File, r.limits.Total-r.total)
		sum, size, err := hashOf(f, left, buffer)
		switch {
		case err != nil:
			r.fault(f.Path, "cannot be read: %v", err)
			f.open = nil
			continue
		case size > left:
			r.fault(f.Path, "has more bytes than it says, and more than are allowed")
			r.large = true
			return
		}
		f.Size, f.SHA256 = size, sum
		r.total += size
	}
}

func hashOf(f *File, most int64, buffer []byte) (sum [sha256.Size]byte, size int64, err error) {
	in, err := f.open()
	if err != nil {
		return sum, 0, err
	}
	h := sha256.New()
	size, err = io.CopyBuffer(h, io.LimitReader(in, most+1), buffer)
	return [sha256.Size]byte(h.Sum(nil)), size, errors.Join(err, in.Close())
}

// topOf is the directory that all files are in, with its slash; "": there is none.
func topOf(files []File) string {
	if len(files) == 0 {
		return ""
	}
	top, _, _ := strings.Cut(files[0].Path, "/")
	top += "/"
	if slices.ContainsFunc(files, func(f File) bool { return !strings.HasPrefix(f.Path, top) }) {
		return ""
	}
	return top
}

// Dir reads a directory.
func Dir(fsys fs.FS, limits Limits) (*Bundle, []graph.Fault, error) {
	r := &reader{limits: limits.withDefaults(), bundle: &Bundle{}}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name == "." {
			return nil
		}
		if d.IsDir() {
			if skip, missed := ignored(name); skip {
				if missed {
					r.bundle.Hidden = append(r.bundle.Hidden, name)
				}
				return fs.SkipDir
			}
			return nil
		}
		if r.full {
			return fs.SkipAll
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		r.add(entry{name: name, mode: info.Mode(), size: info.Size(), open: func() (io.ReadCloser, error) { return fsys.Open(name) }})
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	b, faults := r.finish()
	return b, faults, nil
}

// directoryBytes bounds the directory of a zip, all of which is taken into memory before its entries can be counted: enough for Limits.Files of
// usual names.
const directoryBytes = 16 << 20

// errDirectory is of a zip whose directory is larger than that.
var errDirectory = fmt.Errorf("its list of files is larger than %d MiB", directoryBytes>>20)

// bounded fails when more than so many bytes were read.
type bounded struct {
	io.ReaderAt

	left int64
}

func (b *bounded) ReadAt(p []byte, off int64) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, errDirectory
	}
	return b.ReaderAt.ReadAt(p, off)
}

// Zip reads a zip. An error means that it is none, or a broken one.
func Zip(in io.ReaderAt, size int64, limits Limits) (*Bundle, []graph.Fault, error) {
	reading := &bounded{in, directoryBytes}
	z, err := zip.NewReader(reading, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, nil, fmt.Errorf("not a zip file: %w", err)
	}
	reading.left = 1 << 62 // the files have bounds of their own
	r := &reader{limits: limits.withDefaults(), bundle: &Bundle{}}
	for _, f := range z.File {
		if strings.HasSuffix(f.Name, "/") || f.Mode().IsDir() {
			if reason := badPath(f.Name); reason != "" {
				r.fault(f.Name, "%s", reason)
			}
			continue
		}
		e := entry{name: f.Name, mode: f.Mode(), size: int64(min(f.UncompressedSize64, 1<<62)), open: f.Open}
		const encrypted = 1
		if f.Flags&encrypted != 0 {
			e.fault = "is encrypted"
		}
		r.add(e)
	}
	b, faults := r.finish()
	return b, faults, nil
}

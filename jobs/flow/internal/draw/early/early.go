// Package early keeps the layout library from writing below the directory of temporary files that all users of a machine share.
//
// The library compiles its WebAssembly when the program starts, and caches the machine code in a directory of a fixed name there: a
// second user can neither write it nor should trust it, and the library panics. Packages are initialised in the order of their import
// paths as soon as what they import is (Go specification, "Program initialization"); this one imports next to nothing, so it
// comes first and points TMPDIR at the user's own cache. Package draw, which comes after the library, calls Restore.
package early

import (
	"os"
	"path/filepath"
)

var (
	before string
	given  bool
)

func init() { //nolint:gochecknoinits // the order of initialisation is what it is for
	before, given = os.LookupEnv("TMPDIR") //nolint:forbidigo // the library reads it, and nobody gives it a Config
	_ = os.Setenv("TMPDIR", place())
}

// place is a directory of the user's own; if there is none, one that cannot be: then nothing is cached, and a start takes a second.
func place() string {
	if dir, err := os.UserCacheDir(); err == nil {
		dir = filepath.Join(dir, "pelton", "draw")
		if os.MkdirAll(dir, 0o700) == nil {
			return dir
		}
	}
	return filepath.Join(os.DevNull, "none")
}

// Restore puts TMPDIR back as it was.
func Restore() {
	if given {
		_ = os.Setenv("TMPDIR", before)
	} else {
		_ = os.Unsetenv("TMPDIR")
	}
}

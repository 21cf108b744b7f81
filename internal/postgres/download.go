package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	embedded "github.com/fergusstrange/embedded-postgres"
)

// DownloadOptions say what [Download] fetches and where to.
type DownloadOptions struct {
	// Dir keeps the programs, in a directory per version. Required. As root it must be a directory that the server's
	// user can reach: see [Place].
	Dir string
	// Version is a version as the repository names it, "18.3.0". Defaults to the newest that is known here.
	Version string
	// RepositoryURL is a Maven repository that has the archives of embedded-postgres-binaries. Defaults to the
	// library's.
	RepositoryURL string
	// OSUser is as in [Config].
	OSUser string
}

// Download fetches a server's programs, some 10 MB, and unpacks them, unless that was done before. When the context
// ends it returns at once, and what was on the way is removed when the network gives up.
func Download(ctx context.Context, options DownloadOptions) (Binaries, error) {
	if options.Dir == "" {
		return Binaries{}, errors.New("download PostgreSQL: no Dir")
	}
	if options.Version == "" {
		options.Version = string(embedded.V18)
	}
	dir, err := filepath.Abs(options.Dir)
	if err != nil {
		return Binaries{}, fmt.Errorf("download PostgreSQL: %w", err)
	}
	options.Dir = dir
	if err := openTo(dir, options.OSUser); err != nil {
		return Binaries{}, fmt.Errorf("download PostgreSQL: %w", err)
	}
	final := filepath.Join(dir, "postgresql-"+options.Version)
	if found, err := inspect(ctx, filepath.Join(final, "bin")); err == nil {
		return found, nil
	}
	outcome := make(chan error, 1)
	go func() { outcome <- fetch(options, final) }() // the library takes no context; see above
	select {
	case err := <-outcome:
		if err != nil {
			return Binaries{}, fmt.Errorf("download PostgreSQL %s: %w", options.Version, err)
		}
	case <-ctx.Done():
		return Binaries{}, fmt.Errorf("download PostgreSQL %s: %w", options.Version, context.Cause(ctx))
	}
	found, err := inspect(ctx, filepath.Join(final, "bin"))
	if err != nil {
		return Binaries{}, fmt.Errorf("downloaded PostgreSQL %s: %w", options.Version, err)
	}
	return found, nil
}

// openTo makes the directory and checks that the server's user can reach it.
func openTo(dir, osUser string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	as, err := accountFor(osUser)
	if err != nil {
		return err
	}
	if !as.switched {
		return nil
	}
	return as.canReach(dir)
}

// fetch unpacks into a directory beside the final one and renames it when it is complete.
//
// The library has no call to fetch alone: its Start downloads, unpacks, clears the data directory, and goes on to initdb,
// which refuses root. It is given a data directory below a plain file, so that the clearing fails and it stops there.
func fetch(options DownloadOptions, final string) (err error) {
	held, err := await(final)
	if err != nil {
		return err
	}
	defer held.release()
	if _, err := os.Stat(final); err == nil {
		return nil // another process was faster
	}
	work, err := os.MkdirTemp(options.Dir, "download-")
	if err != nil {
		return err
	}
	defer func() {
		if trouble := recover(); trouble != nil { // the library panics when it cannot remove its files
			err = fmt.Errorf("unpack: %v", trouble)
		}
		err = errors.Join(err, os.RemoveAll(work))
	}()
	unpacked, stop := filepath.Join(work, "server"), filepath.Join(work, "stop")
	if err := os.WriteFile(stop, nil, 0o600); err != nil {
		return err
	}
	config := embedded.DefaultConfig().
		Version(embedded.PostgresVersion(options.Version)).
		Port(0).
		CachePath(filepath.Join(work, "archive")).
		BinariesPath(unpacked).
		RuntimePath(filepath.Join(work, "runtime")).
		DataPath(filepath.Join(stop, "data")).
		Logger(io.Discard)
	if options.RepositoryURL != "" {
		config = config.BinaryRepositoryURL(options.RepositoryURL)
	}
	stopped := embedded.NewDatabase(config).Start()
	for _, program := range []string{"initdb", "postgres"} {
		if _, err := os.Stat(filepath.Join(unpacked, "bin", program)); err != nil {
			return errors.Join(stopped, err)
		}
	}
	if err := readable(unpacked); err != nil {
		return err
	}
	return os.Rename(unpacked, final)
}

// readable opens everything to every user: the server may run as another one than this process.
func readable(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Type()&fs.ModeSymlink != 0 {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		mode := info.Mode().Perm() | 0o444
		if mode&0o100 != 0 || info.IsDir() {
			mode |= 0o111
		}
		return os.Chmod(path, mode)
	})
}

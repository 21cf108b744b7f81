package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/peltonq/pelton/internal/postgres"
)

// devDatabase is the database of a private server.
const devDatabase = "pelton"

// stopPatience is how long a private server may take to shut down.
const stopPatience = 30 * time.Second

// startPrivate starts pelton dev's own server in dir, making it if needed, with programs found here or downloaded.
func (a *app) startPrivate(ctx context.Context, dir, binDir string) (*postgres.Cluster, error) {
	if err := ownDirectory(dir); err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "postgres")
	programs, err := a.programs(ctx, dir, data, binDir)
	if err != nil {
		return nil, err
	}
	cluster, err := postgres.Start(ctx, postgres.Config{
		Binaries: programs, DataDir: data, DieWithOwner: true,
		// Questions over all partitions look costly to the planner, and compiling them takes a minute where running takes a tenth of a second.
		Settings: map[string]string{"jit": "off"},
	})
	if errors.Is(err, postgres.ErrInUse) {
		return nil, refused(fmt.Errorf("another pelton dev uses %s (%w); stop it, or give this one a directory of its own with --data-dir",
			dir, err))
	}
	if err != nil {
		return nil, err
	}
	if err := createDevDatabase(ctx, cluster.DSN("postgres")); err != nil {
		return nil, errors.Join(err, stopPrivate(ctx, cluster))
	}
	return cluster, nil
}

// ownDirectory refuses a directory that holds something, and nothing of pelton dev's.
func ownDirectory(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return refused(fmt.Errorf("data directory: %w", err))
	}
	other := ""
	for _, e := range entries {
		switch e.Name() {
		case "postgres", "postgres.lock", "programs", filepath.Base(devFilePath(dir)):
			return nil
		case "lost+found": // of a disk of its own
		default:
			other = e.Name()
		}
	}
	if other != "" {
		return refused(fmt.Errorf("the data directory %s holds other things (%s) and no database of pelton dev's: give it a directory of its own with --data-dir",
			dir, other))
	}
	return nil
}

// programs finds a server, of the version that made the data if there are any, or downloads one.
func (a *app) programs(ctx context.Context, dir, data, binDir string) (postgres.Binaries, error) {
	major, err := majorOf(data)
	if err != nil {
		return postgres.Binaries{}, err
	}
	found, err := postgres.Find(ctx, postgres.FindOptions{BinDir: binDir, Major: major})
	if !errors.Is(err, postgres.ErrNotFound) || binDir != "" {
		return found, err
	}
	fmt.Fprintf(a.stderr, "pelton: %v\npelton: downloading PostgreSQL into %s\n", err, filepath.Join(dir, "programs"))
	found, err = postgres.Download(ctx, postgres.DownloadOptions{Dir: filepath.Join(dir, "programs")})
	if err != nil {
		return found, fmt.Errorf("%w\nInstall PostgreSQL %d or newer, or set DATABASE_URL", err, postgres.MinMajor)
	}
	if major != 0 && found.Major != major {
		return found, fmt.Errorf("the data in %s was made by PostgreSQL %d, and only %d can be had: install %d, or choose another --data-dir",
			data, major, found.Major, major)
	}
	return found, nil
}

// majorOf is the version of the server that made a data directory, 0 if there is none yet.
func majorOf(data string) (int, error) {
	text, err := os.ReadFile(filepath.Join(data, "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("version of the data: %w", err)
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("version of the data in %s: %w", data, err)
	}
	return major, nil
}

func createDevDatabase(ctx context.Context, address string) (err error) {
	session, err := pgx.Connect(ctx, address)
	if err != nil {
		return fmt.Errorf("first connection: %w", err)
	}
	defer func() { err = errors.Join(err, session.Close(context.WithoutCancel(ctx))) }()
	var exists bool
	if err := session.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", devDatabase).Scan(&exists); err != nil {
		return fmt.Errorf("look for database %q: %w", devDatabase, err)
	}
	if exists {
		return nil
	}
	if _, err := session.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{devDatabase}.Sanitize()); err != nil {
		return fmt.Errorf("create database %q: %w", devDatabase, err)
	}
	return nil
}

func stopPrivate(ctx context.Context, cluster *postgres.Cluster) error {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopPatience)
	defer cancel()
	return cluster.Stop(limited)
}

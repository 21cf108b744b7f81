package postgres

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// roles are what a process of this test binary does instead of running tests. They print what the test wants to know.
var roles = map[string]func() int{
	"own":      ownServer,
	"ordinary": ordinaryUser,
}

func roleConfig(ctx context.Context, dir string) (Config, error) {
	found, err := Find(ctx, FindOptions{BinDir: os.Getenv("PELTON_TEST_PG_BIN")})
	return Config{
		Binaries: found, DataDir: filepath.Join(dir, "data"), NoSync: true, DieWithOwner: true,
		Settings: map[string]string{"shared_buffers": "16MB"},
	}, err
}

// ownServer starts a server in the directory given, prints its process id, and waits to be killed.
func ownServer() int {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	config, err := roleConfig(ctx, os.Args[1])
	if err != nil {
		return complain(err)
	}
	config.DieWithOwner = os.Args[2] == "die"
	cluster, err := Start(ctx, config)
	if err != nil {
		return complain(err)
	}
	fmt.Println(cluster.PID())
	<-ctx.Done()
	return 1
}

// ordinaryUser does everything once as a user that is not root.
func ordinaryUser() int {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	config, err := roleConfig(ctx, os.Args[1])
	if err != nil {
		return complain(err)
	}
	cluster, err := Start(ctx, config)
	if err != nil {
		return complain(err)
	}
	if err := cluster.Kill(); err != nil {
		return complain(err)
	}
	if err := cluster.Restart(ctx); err != nil {
		return complain(err)
	}
	if _, err := cluster.CPUTime(); err != nil {
		return complain(err)
	}
	if err := cluster.Discard(ctx); err != nil {
		return complain(err)
	}
	config.OSUser = "root"
	if _, err := Start(ctx, config); err == nil {
		return complain(fmt.Errorf("could start as root"))
	}
	fmt.Println("done as", os.Geteuid())
	return 0
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

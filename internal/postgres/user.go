package postgres

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// account is the operating system's user that the server runs as.
type account struct {
	name     string
	uid, gid int
	// switched is true when the server runs as another user than this process.
	switched bool
}

// accountFor chooses the user. As root it is the wanted one, else postgres, else nobody; everybody else can only be
// themselves.
func accountFor(wanted string) (account, error) {
	if os.Geteuid() != 0 {
		return ownAccount(wanted)
	}
	candidates := []string{wanted}
	if wanted == "" {
		candidates = []string{"postgres", "_postgres", "nobody"}
	}
	var failures []error
	for _, name := range candidates {
		found, err := lookup(name)
		if err == nil {
			return found, nil
		}
		failures = append(failures, err)
	}
	return account{}, fmt.Errorf("PostgreSQL cannot run as root and needs another user: %w", errors.Join(failures...))
}

func ownAccount(wanted string) (account, error) {
	own := account{name: "uid " + strconv.Itoa(os.Geteuid()), uid: os.Geteuid(), gid: os.Getegid()}
	if current, err := user.Current(); err == nil {
		own.name = current.Username
	}
	if wanted != "" && wanted != own.name {
		return account{}, fmt.Errorf("run PostgreSQL as user %q: only root can do that, this process runs as %q", wanted, own.name)
	}
	return own, nil
}

func lookup(name string) (account, error) {
	entry, err := user.Lookup(name)
	if err != nil {
		return account{}, err
	}
	uid, uidErr := strconv.Atoi(entry.Uid)
	gid, gidErr := strconv.Atoi(entry.Gid)
	if err := errors.Join(uidErr, gidErr); err != nil {
		return account{}, fmt.Errorf("user %q: %w", name, err)
	}
	if uid == 0 {
		return account{}, fmt.Errorf("user %q is root, and PostgreSQL refuses to run as root", name)
	}
	return account{name: name, uid: uid, gid: gid, switched: true}, nil
}

// attributes makes a child process run as the account, in a process group of its own.
func (a account) attributes() *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setpgid: true}
	if a.switched {
		attributes.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
	return attributes
}

// give makes a file the account's own.
func (a account) give(path string) error {
	if !a.switched {
		return nil
	}
	return os.Chown(path, a.uid, a.gid)
}

// environment is what a child needs: the owner's home is not the account's, so HOME goes when the user changes.
func (a account) environment() []string {
	kept := []string{"LC_ALL=C", "TZ=UTC"}
	for _, key := range []string{"PATH", "HOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR"} {
		value, set := os.LookupEnv(key)
		if !set || (a.switched && (key == "HOME" || key == "TMPDIR")) {
			continue
		}
		kept = append(kept, key+"="+value)
	}
	return kept
}

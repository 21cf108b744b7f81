package postgres

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// Config describes a private server for [Start].
type Config struct {
	// Binaries are the server's programs, from [Find] or [Download]. Required.
	Binaries Binaries
	// DataDir is the server's data directory. It is made when it is missing or empty. Its parent must be writable:
	// a lock file (DataDir + ".lock") lies beside it, and the new cluster is prepared there. Required.
	DataDir string
	// Port is the TCP port on 127.0.0.1 to use if it is free. 0 means the port of the last start of this data
	// directory, else any free one. When the wanted port is taken another one is used: ask [Cluster.Port].
	Port int
	// Settings are server settings given on the command line ("shared_buffers": "128MB"). The ones that this package
	// decides itself are refused: data_directory, listen_addresses, port, unix_socket_directories.
	Settings map[string]string
	// NoSync gives up durability for speed: a crash of the machine (not of the server) destroys the data. For tests
	// only.
	NoSync bool
	// Trust lets every user of this machine connect without a password, which saves some milliseconds per connection.
	// It counts when the data directory is made. For tests only. Without it a random password is made and is in the
	// DSN.
	Trust bool
	// DieWithOwner stops the server (fast, as [Cluster.Stop] does) when this process dies, however it dies. Linux only; elsewhere a killed
	// process leaves its server running.
	DieWithOwner bool
	// LogFile receives what the server prints. Defaults to DataDir + ".log". Above 16 MiB it is moved to LogFile +
	// ".old" at the next start.
	LogFile string
	// OSUser is the user that the server runs as when this process is root. Defaults to postgres, else nobody. Other
	// users can only name themselves.
	OSUser string
	// StartTimeout limits the making of the data directory and each start. Crash recovery counts. Defaults to 60 s.
	StartTimeout time.Duration
}

func (c Config) withDefaults() Config {
	if c.LogFile == "" && c.DataDir != "" {
		c.LogFile = c.DataDir + ".log"
	}
	if c.StartTimeout == 0 {
		c.StartTimeout = time.Minute
	}
	return c
}

var (
	settingPattern  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`)
	decidedSettings = []string{"data_directory", "listen_addresses", "port", "unix_socket_directories"}
)

func (c Config) validate() error {
	var faults []error
	if c.Binaries.Dir == "" || c.Binaries.Major == 0 {
		faults = append(faults, errors.New("no Binaries: take them from Find"))
	}
	if c.DataDir == "" {
		faults = append(faults, errors.New("no DataDir"))
	}
	if c.Port < 0 || c.Port > 65535 {
		faults = append(faults, fmt.Errorf("port %d is not between 0 and 65535", c.Port))
	}
	if c.StartTimeout < 0 {
		faults = append(faults, fmt.Errorf("StartTimeout %v is negative", c.StartTimeout))
	}
	for name := range c.Settings {
		if !settingPattern.MatchString(name) {
			faults = append(faults, fmt.Errorf("%q is no name of a setting", name))
		}
		if slices.Contains(decidedSettings, name) {
			faults = append(faults, fmt.Errorf("setting %q is decided by this package", name))
		}
	}
	if len(faults) > 0 {
		return fmt.Errorf("server config: %w", errors.Join(faults...))
	}
	return nil
}

// absolute makes the paths independent of the working directory.
func (c Config) absolute() (Config, error) {
	var dataErr, logErr error
	c.DataDir, dataErr = filepath.Abs(c.DataDir)
	c.LogFile, logErr = filepath.Abs(c.LogFile)
	return c, errors.Join(dataErr, logErr)
}

// arguments are those of the postgres program.
func (c Config) arguments(port int, socketDir string) []string {
	settings := map[string]string{
		"listen_addresses":        "127.0.0.1",
		"port":                    strconv.Itoa(port),
		"unix_socket_directories": socketDir,
		"logging_collector":       "off",
		"log_destination":         "stderr",
		"lc_messages":             "C", // failures are told apart by their text
	}
	if c.NoSync {
		settings["fsync"] = "off"
		settings["full_page_writes"] = "off"
	}
	maps.Copy(settings, c.Settings)
	arguments := []string{"-D", c.DataDir}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		arguments = append(arguments, "-c", name+"="+settings[name])
	}
	return arguments
}

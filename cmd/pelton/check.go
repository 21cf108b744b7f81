package main

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/spf13/pflag"
)

// positive refuses flags that were given a number or a time that is not above zero. Not given, they stand for a default, which is
// not what somebody means who says 0.
func positive(f *pflag.FlagSet, names ...string) error {
	var faults []error
	for _, name := range names {
		if !f.Changed(name) {
			continue
		}
		text := f.Lookup(name).Value.String()
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n < 1 {
			faults = append(faults, fmt.Errorf("--%s is %s, want 1 or more", name, text))
		} else if d, err := time.ParseDuration(text); err == nil && d <= 0 {
			faults = append(faults, fmt.Errorf("--%s is %s, want a time above zero", name, text))
		}
	}
	if len(faults) > 0 {
		return usage(errors.Join(faults...))
	}
	return nil
}

// flagFault says what a flag wants instead of what Go's parsers say.
func flagFault(err error) error {
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	var want string
	switch invalid.GetFlag().Value.Type() {
	case "int", "int64":
		want = "a whole number"
		if errors.Is(err, strconv.ErrRange) {
			want = "a smaller number"
		}
	case "duration":
		want = "a time, as 90s, 10m or 1h30m"
	case "bool":
		want = "true or false"
	default:
		return err
	}
	return fmt.Errorf("--%s is %q, want %s", invalid.GetFlag().Name, invalid.GetValue(), want)
}

// retentionNames are the flags of retentionFlags.
var retentionNames = []string{"keep-jobs", "keep-logs", "keep-dead", "keep-audit", "keep-ticks"}

// check refuses what flags of a long-running command cannot mean, before anything is begun.
func (s *serving) check() error {
	if err := positive(s.given, append([]string{"heartbeat", "lease", "poll-interval"}, retentionNames...)...); err != nil {
		return err
	}
	if s.shutdown < 0 {
		return usagef("--shutdown-timeout is %v, want 0 or more", s.shutdown)
	}
	if s.queues == "" && s.given.Changed("queues") {
		return usagef("--queues is empty: name the queues to work, as in default:100,etl:10")
	}
	if _, err := parseQueues(s.queues); err != nil {
		return err
	}
	if err := s.access.check(); err != nil {
		return err
	}
	if err := s.alerts.check(); err != nil {
		return err
	}
	if s.listen == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(s.listen)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return usagef("--listen is %q, want HOST:PORT, as in 127.0.0.1:8080", s.listen)
	}
	return nil
}

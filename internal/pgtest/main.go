package pgtest

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Option changes what [Main] does.
type Option func(*mainOptions)

type mainOptions struct {
	leaks    bool
	leakOpts []goleak.Option
}

// CheckLeaks makes a run that passed fail when goroutines are left over after the last test.
func CheckLeaks(options ...goleak.Option) Option {
	return func(o *mainOptions) { o.leaks, o.leakOpts = true, append(o.leakOpts, options...) }
}

// Main runs a package's tests, stops the server if one was started, and exits. Call it from TestMain.
func Main(m *testing.M, options ...Option) {
	os.Exit(run(m, options...))
}

func run(m *testing.M, options ...Option) int {
	var chosen mainOptions
	for _, option := range options {
		option(&chosen)
	}
	code := m.Run()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := stopShared(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		code = max(code, 1)
	}
	if code == 0 && chosen.leaks {
		if err := goleak.Find(chosen.leakOpts...); err != nil {
			fmt.Fprintln(os.Stderr, "pgtest: goroutines are left after the last test:", err)
			code = 1
		}
	}
	return code
}

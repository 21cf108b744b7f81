package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/peltonq/pelton/internal/pgtest"
)

// terminal opens a pseudo terminal: what is typed into keyboard is read from screen.
func terminal(t *testing.T) (keyboard, screen *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = keyboard.Close() })
	if err := unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	screen, err = os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	return keyboard, screen
}

// shared is a buffer that is read while it is written.
type shared struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *shared) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// On a terminal the password is asked for twice, and not shown.
func TestPasswordOnATerminal(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	for _, c := range []struct {
		again string
		code  int
		says  string
	}{{"another horse", exitUsage, "the two passwords differ"}, {password, exitOK, ""}} {
		keyboard, screen := terminal(t)
		var out bytes.Buffer
		var err shared
		code := make(chan int, 1)
		go func() {
			code <- run(t.Context(), []string{"user", "add", "alice"}, screen, &out, &err, func(key string) string { return s.env[key] })
		}()
		for _, step := range [][2]string{{"Password: ", password}, {"Again: ", c.again}} {
			pgtest.Eventually(t, patience, func() bool { return strings.HasSuffix(err.String(), step[0]) && silent(t, screen) }, "the prompt %q", step[0])
			if _, err := keyboard.WriteString(step[1] + "\n"); err != nil {
				t.Fatal(err)
			}
		}
		if got := <-code; got != c.code || !strings.Contains(err.String(), c.says) || strings.Contains(err.String(), "horse") {
			t.Errorf("exit code %d, %q; want %d, %q", got, err.String(), c.code, c.says)
		}
	}
	if r := s.object("user", "list"); r["name"] != "alice" {
		t.Errorf("users: %v", r)
	}
}

// silent tells whether a terminal does not show what is typed.
func silent(t *testing.T, screen *os.File) bool {
	t.Helper()
	state, err := unix.IoctlGetTermios(int(screen.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return state.Lflag&unix.ECHO == 0
}

// Package mailtest is a mail server for tests: it takes every message.
package mailtest

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
)

// Serve speaks as much SMTP as a client needs, on a port of its own until the test ends. The text of each message, after the commands of its envelope,
// goes to got; the sender is answered when somebody has taken it.
func Serve(t testing.TB, got chan<- string) (address string) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serve(conn, got)
		}
	}()
	return l.Addr().String()
}

func serve(conn net.Conn, got chan<- string) {
	defer conn.Close() //nolint:errcheck // a test's
	say := func(line string) { _, _ = fmt.Fprintf(conn, "%s\r\n", line) }
	say("220 test")
	r := bufio.NewReader(conn)
	var text strings.Builder
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		switch verb := strings.ToUpper(strings.Fields(line + " -")[0]); verb {
		case "EHLO", "HELO":
			say("250 test")
		case "DATA":
			say("354 go on")
			for line != ".\r\n" {
				if line, err = r.ReadString('\n'); err != nil {
					return
				}
				text.WriteString(line)
			}
			got <- text.String()
			say("250 taken")
		case "QUIT":
			say("221 bye")
			return
		default:
			text.WriteString(line)
			say("250 ok")
		}
	}
}

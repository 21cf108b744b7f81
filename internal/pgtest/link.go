package pgtest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

const (
	sslRequest    = 80877103
	gssRequest    = 80877104
	cancelRequest = 80877102
	maxMessage    = 1 << 30
)

// link is one connection through a proxy. It knows the protocol well enough to tell messages apart and to count which
// answer belongs to what: the server ends each answer with ReadyForQuery.
type link struct {
	proxy          *Proxy
	client, server net.Conn
	cutting        chan struct{}
	once           sync.Once

	mu      sync.Mutex
	asked   int   // messages sent that end with a ReadyForQuery
	ready   int   // ReadyForQuery seen
	holdAt  int   // the answer that must not be passed on; 0 for none
	trapped *trap // what is told when holdAt has come
}

// cut breaks both ends.
func (l *link) cut() {
	l.once.Do(func() {
		close(l.cutting)
		reset(l.client) // at once: who cuts a connection may use it in the next moment, and is not to get an answer
	})
}

// run passes messages on until both ends have closed or the link is cut.
func (l *link) run(server net.Conn) {
	l.server = server
	var cutter, work sync.WaitGroup
	cutter.Go(func() {
		<-l.cutting
		reset(l.server)
	})
	work.Go(func() { l.finish(l.clientToServer(), l.server) })
	work.Go(func() { l.finish(l.serverToClient(), l.client) })
	work.Wait()
	l.cut()
	cutter.Wait()
}

// finish hands an orderly end of one side on to the other, which may still have something to say. Anything else breaks
// the link: that is all there is to say about it, and both ends see it.
func (l *link) finish(err error, other net.Conn) {
	half, ok := other.(interface{ CloseWrite() error })
	if errors.Is(err, io.EOF) && ok && half.CloseWrite() == nil {
		return
	}
	l.cut()
}

func (l *link) clientToServer() error {
	from := bufio.NewReaderSize(l.client, 32<<10)
	to := bufio.NewWriterSize(l.server, 32<<10)
	if err := l.startup(from, to); err != nil {
		return err
	}
	for {
		message, err := readMessage(from)
		if err != nil {
			return err
		}
		l.proxy.gate(l)
		armed := l.proxy.caught(message)
		if armed != nil && armed.before {
			l.cut()
			close(armed.sprung)
			return errCut
		}
		l.count(message[0], armed)
		if _, err := to.Write(message); err != nil {
			return err
		}
		if from.Buffered() > 0 && armed == nil {
			continue // more of the pipeline is here already
		}
		if err := to.Flush(); err != nil {
			return err
		}
	}
}

// startup passes on the first message, which has no type. Encryption is declined.
func (l *link) startup(from *bufio.Reader, to *bufio.Writer) error {
	for {
		head, err := from.Peek(8)
		if err != nil {
			return err
		}
		size := int(binary.BigEndian.Uint32(head))
		code := binary.BigEndian.Uint32(head[4:])
		if size < 8 || size > 1<<16 {
			return protocolError("first message of size", size)
		}
		message := make([]byte, size)
		if _, err := io.ReadFull(from, message); err != nil {
			return err
		}
		if code == sslRequest || code == gssRequest {
			if _, err := l.client.Write([]byte("N")); err != nil {
				return err
			}
			continue
		}
		l.proxy.gate(l)
		if code != cancelRequest {
			l.mu.Lock()
			l.asked++
			l.mu.Unlock()
		}
		if _, err := to.Write(message); err != nil {
			return err
		}
		return to.Flush()
	}
}

// count keeps track of what was asked, and notes which answer a trap wants to be lost.
func (l *link) count(kind byte, armed *trap) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ends := kind == 'Q' || kind == 'S' || kind == 'F' // Query, Sync, FunctionCall
	if ends {
		l.asked++
	}
	if armed == nil {
		return
	}
	l.trapped = armed
	switch {
	case ends:
		l.holdAt = l.asked
	case (kind == 'c' || kind == 'd' || kind == 'f') && l.asked > l.ready:
		l.holdAt = l.asked // within the COPY of a simple Query
	default:
		l.holdAt = l.asked + 1 // the Sync of this pipeline comes later
	}
	// The other direction is in the middle of a read and looks at holdAt before it passes anything on. Should the
	// server never answer, the link is cut all the same.
	l.proxy.work.Go(func() {
		patience := time.NewTimer(time.Minute)
		defer patience.Stop()
		select {
		case <-patience.C:
			l.cut()
		case <-l.cutting:
		}
	})
}

func (l *link) serverToClient() error {
	from := bufio.NewReaderSize(l.server, 32<<10)
	to := bufio.NewWriterSize(l.client, 32<<10)
	for {
		message, err := readMessage(from)
		if err != nil {
			return err
		}
		l.proxy.gate(l)
		pass, sprung := l.answer(message[0])
		if sprung != nil {
			l.cut()
			close(sprung)
			return errCut
		}
		if !pass {
			continue
		}
		if _, err := to.Write(message); err != nil {
			return err
		}
		if from.Buffered() > 0 {
			continue
		}
		if err := to.Flush(); err != nil {
			return err
		}
	}
}

// answer decides whether a message of the server goes to the client, and returns the trap's channel when the answer that
// it wants to be lost is complete.
func (l *link) answer(kind byte) (pass bool, sprung chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	pass = l.holdAt == 0 || l.ready < l.holdAt-1
	if kind == 'G' || kind == 'W' {
		pass = true // the client must know that it may send its COPY data
	}
	if kind == 'Z' {
		l.ready++
		if l.holdAt != 0 && l.ready >= l.holdAt {
			return false, l.trapped.sprung
		}
	}
	return pass, nil
}

// readMessage reads a message with its type byte and length.
func readMessage(from *bufio.Reader) ([]byte, error) {
	head, err := from.Peek(5)
	if err != nil {
		return nil, err
	}
	size := int(binary.BigEndian.Uint32(head[1:]))
	if size < 4 || size > maxMessage {
		return nil, protocolError("message of size", size)
	}
	message := make([]byte, 1+size)
	if _, err := io.ReadFull(from, message); err != nil {
		return nil, err
	}
	return message, nil
}

// SQL matches the client messages that carry a statement (Query and Parse) with this text in it, in any case. A
// statement that the client has prepared before is not carried again: use [Any] or a connection in simple protocol.
func SQL(text string) func(message []byte) bool {
	wanted := bytes.ToLower([]byte(text))
	return func(message []byte) bool {
		return (message[0] == 'Q' || message[0] == 'P') && bytes.Contains(bytes.ToLower(message[1:]), wanted)
	}
}

// Any matches every client message of one of the types, for example 'B' for Bind.
func Any(types string) func(message []byte) bool {
	return func(message []byte) bool { return bytes.IndexByte([]byte(types), message[0]) >= 0 }
}

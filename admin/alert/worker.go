package alert

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/internal/deliver"
)

// lateAfter is how old a notice must be as it is sent to say so.
const lateAfter = 5 * time.Minute

// maxAttempts of a notice; with the waits between them they take about 40 minutes.
const maxAttempts = 7

// waits are those between two attempts.
var waits = []time.Duration{5 * time.Second, 20 * time.Second, time.Minute, 3 * time.Minute, 10 * time.Minute, 25 * time.Minute}

// Worker sends notices by the channels of a file.
type Worker struct {
	river.WorkerDefaults[Notice]

	file string
	ways map[string]*way
	now  func() time.Time
	wait func(attempt int) time.Duration // after a failed attempt, from 1
}

// NewWorker makes a worker. The error says all variables and files that the channels refer to and that are missing or wrong.
func NewWorker(f *File, env Environment) (*Worker, error) {
	ways, err := f.resolve(env)
	if err != nil {
		return nil, err
	}
	wait := func(attempt int) time.Duration { return waits[min(max(attempt, 1), len(waits))-1] }
	return &Worker{file: f.Path, ways: ways, now: time.Now, wait: wait}, nil
}

// Timeout implements river.Worker.
func (*Worker) Timeout(*river.Job[Notice]) time.Duration { return 2 * deliver.Timeout }

// NextRetry implements river.Worker.
func (w *Worker) NextRetry(job *river.Job[Notice]) time.Time { return w.now().Add(w.wait(job.Attempt)) }

// Work implements river.Worker.
func (w *Worker) Work(ctx context.Context, job *river.Job[Notice]) error {
	n := job.Args
	n.ID = job.ID
	if late := w.now().Sub(n.At); late > lateAfter {
		n.Late = Duration(late.Truncate(time.Second))
	}
	to, known := w.ways[n.Channel]
	if !known {
		return fmt.Errorf("channel %q: %s of this process has none of that name", n.Channel, w.file)
	}
	err := to.send(ctx, &n, w.now())
	if err != nil {
		err = fmt.Errorf("channel %s: %w", n.Channel, err)
	}
	if _, wrong := errors.AsType[*deliver.AddressError](err); wrong {
		return river.JobCancel(err)
	}
	return err
}

func (w *way) send(ctx context.Context, n *Notice, now time.Time) error {
	switch w.Type {
	case Mail:
		return w.mailer.Send(ctx, n.subjectLine(), n.text(), w.To...)
	case Slack:
		body, err := json.Marshal(map[string]string{"text": escape.Replace(n.short())})
		if err != nil {
			return err
		}
		return deliver.Post(ctx, w.url, body, nil)
	}
	body, err := json.Marshal(n)
	if err != nil {
		return err
	}
	header := http.Header{}
	if w.secret != "" {
		header.Set(SignatureHeader, sign(body, w.secret, now))
	}
	return deliver.Post(ctx, w.url, body, header)
}

// escape makes a text fit for Slack, where these three begin links and mentions.
var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// SignatureHeader holds the signature of what a webhook gets: t=SECONDS,v1=HEX. HEX is the HMAC-SHA256 of SECONDS, a dot and the body.
const SignatureHeader = "Pelton-Signature"

func sign(body []byte, secret string, now time.Time) string {
	at := strconv.FormatInt(now.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(at + "."))
	mac.Write(body)
	return "t=" + at + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}

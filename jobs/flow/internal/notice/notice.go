package notice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/internal/deliver"
)

// Kind is the kind of the jobs that send notices.
const Kind = "flow_notify"

// Events that are told.
const (
	Succeeded    = "succeeded"
	Failed       = "failed"
	Killed       = "killed"
	FirstFailure = "first_failure"
	SLAMissed    = "sla_missed"
)

// Args are one notice to one target.
type Args struct {
	To      string    `json:"to"` // an e-mail address, or the URL of a webhook
	Event   string    `json:"event"`
	Project string    `json:"project"`
	Version int       `json:"version"`
	Flow    string    `json:"flow"`
	Run     int64     `json:"run"`
	Status  string    `json:"status"`
	Node    string    `json:"node,omitempty"`
	Detail  string    `json:"detail,omitempty"`
	At      time.Time `json:"at"`
}

// Kind implements river.JobArgs.
func (Args) Kind() string { return Kind }

// subject is the notice in a line.
func (a Args) subject() string {
	where := fmt.Sprintf("%s/%s, run %d", a.Project, a.Flow, a.Run)
	switch a.Event {
	case FirstFailure:
		return fmt.Sprintf("%s: node %s failed", where, a.Node)
	case SLAMissed:
		if a.Node != "" {
			return fmt.Sprintf("%s: node %s missed its SLA", where, a.Node)
		}
		return where + ": missed its SLA"
	default:
		return where + ": " + strings.ToLower(a.Status)
	}
}

func (a Args) text() string {
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-9s%s\n", name, value)
		}
	}
	line("project", fmt.Sprintf("%s, version %d", a.Project, a.Version))
	line("flow", a.Flow)
	line("run", strconv.FormatInt(a.Run, 10))
	line("status", a.Status)
	line("node", a.Node)
	line("at", a.At.UTC().Format(time.RFC3339))
	if a.Detail != "" {
		fmt.Fprintf(&b, "\n%s\n", a.Detail)
	}
	fmt.Fprintf(&b, "\npelton flow show %d\n", a.Run)
	return b.String()
}

// Config says how notices are sent.
type Config struct {
	// SMTP is the mail server: smtp://[USER:PASSWORD@]HOST[:PORT], with TLS by STARTTLS if the server offers it, or smtps://.
	// Empty: notices by e-mail fail.
	SMTP string

	// From is the sender's address.
	From string
}

// Worker sends notices.
type Worker struct {
	river.WorkerDefaults[Args]

	mailer *deliver.Mailer
}

// NewWorker makes a worker. Errors: a wrong SMTP URL, no sender.
func NewWorker(config Config) (*Worker, error) {
	mailer, err := deliver.NewMailer(config.SMTP, config.From)
	if err != nil {
		return nil, err
	}
	return &Worker{mailer: mailer}, nil
}

// Timeout implements river.Worker.
func (*Worker) Timeout(*river.Job[Args]) time.Duration { return 2 * deliver.Timeout }

// Work implements river.Worker.
func (w *Worker) Work(ctx context.Context, job *river.Job[Args]) error {
	a := job.Args
	var err error
	if strings.Contains(a.To, "://") {
		err = post(ctx, a)
	} else if err = w.mailer.Send(ctx, a.subject(), a.text(), a.To); err != nil {
		err = fmt.Errorf("notice to %s: %w", a.To, err)
	}
	if _, wrong := errors.AsType[*deliver.AddressError](err); wrong {
		return river.JobCancel(err)
	}
	return err
}

func post(ctx context.Context, a Args) error {
	body, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("encode a notice: %w", err)
	}
	return deliver.Post(ctx, a.To, body, nil)
}

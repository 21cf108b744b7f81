package notice

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/riverqueue/river"
	"github.com/wneessen/go-mail"
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

	config Config
	server *url.URL
}

// NewWorker makes a worker. Errors: a wrong SMTP URL, no sender.
func NewWorker(config Config) (*Worker, error) {
	w := &Worker{config: config}
	if config.SMTP == "" {
		return w, nil
	}
	u, err := url.Parse(config.SMTP)
	if err != nil || u.Hostname() == "" || u.Scheme != "smtp" && u.Scheme != "smtps" {
		return nil, errors.New("mail server: want smtp://[USER:PASSWORD@]HOST[:PORT] or smtps:// with the same") // the text may hold a password
	}
	if config.From == "" {
		return nil, errors.New("mail server without a sender's address")
	}
	w.server = u
	return w, nil
}

const sendTimeout = 30 * time.Second

// Timeout implements river.Worker.
func (*Worker) Timeout(*river.Job[Args]) time.Duration { return 2 * sendTimeout }

// Work implements river.Worker.
func (w *Worker) Work(ctx context.Context, job *river.Job[Args]) error {
	if strings.Contains(job.Args.To, "://") {
		return post(ctx, job.Args)
	}
	return w.mail(ctx, job.Args)
}

func (w *Worker) mail(ctx context.Context, a Args) error {
	if w.server == nil {
		return fmt.Errorf("notice to %s: no mail server is configured here", a.To)
	}
	m := mail.NewMsg()
	if err := m.From(w.config.From); err != nil {
		return fmt.Errorf("sender of notices: %w", err)
	}
	if err := m.To(a.To); err != nil {
		return river.JobCancel(fmt.Errorf("notice to %q: %w", a.To, err))
	}
	m.Subject(a.subject())
	m.SetBodyString(mail.TypeTextPlain, a.text())
	options := []mail.Option{mail.WithTimeout(sendTimeout)}
	if w.server.Scheme == "smtps" {
		options = append(options, mail.WithSSLPort(false))
	} else {
		options = append(options, mail.WithTLSPortPolicy(mail.TLSOpportunistic))
	}
	if port := w.server.Port(); port != "" {
		n, err := strconv.Atoi(port)
		if err != nil {
			return fmt.Errorf("port of the mail server: %w", err)
		}
		options = append(options, mail.WithPort(n))
	}
	if user := w.server.User; user != nil {
		password, _ := user.Password()
		options = append(options, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(user.Username()), mail.WithPassword(password))
	}
	client, err := mail.NewClient(w.server.Hostname(), options...)
	if err != nil {
		return fmt.Errorf("mail server %s: %w", w.server.Host, err)
	}
	if err := client.DialAndSendWithContext(ctx, m); err != nil {
		return fmt.Errorf("send a notice to %s by %s: %w", a.To, w.server.Host, err)
	}
	return nil
}

func post(ctx context.Context, a Args) error {
	body, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("encode a notice: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.To, bytes.NewReader(body))
	if err != nil {
		return river.JobCancel(fmt.Errorf("webhook %q: %w", a.To, err))
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "pelton")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	if resp.StatusCode/100 == 2 {
		return nil
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
	return fmt.Errorf("webhook %s answered %s: %s", a.To, resp.Status, bytes.TrimSpace(text))
}

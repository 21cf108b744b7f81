package deliver

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/wneessen/go-mail"
)

// Timeout bounds one delivery.
const Timeout = 30 * time.Second

// ErrNoServer says that no mail server is configured.
var ErrNoServer = errors.New("no mail server is configured here")

// AddressError is about an address that no further try makes right.
type AddressError struct {
	Address string
	Err     error
}

func (e *AddressError) Error() string { return fmt.Sprintf("notice to %q: %v", e.Address, e.Err) }
func (e *AddressError) Unwrap() error { return e.Err }

// Mailer sends mails by one server.
type Mailer struct {
	server *url.URL // nil: none
	from   string
}

// NewMailer makes a mailer. The server is smtp://[USER:PASSWORD@]HOST[:PORT], with TLS by STARTTLS if the server offers it, or smtps://;
// empty: Send says that there is none. Errors: a wrong URL, no sender. They do not repeat the URL, which may hold a password.
func NewMailer(server, from string) (*Mailer, error) {
	if server == "" {
		return &Mailer{}, nil
	}
	u, err := url.Parse(server)
	if err != nil || u.Hostname() == "" || u.Scheme != "smtp" && u.Scheme != "smtps" {
		return nil, errors.New("mail server: want smtp://[USER:PASSWORD@]HOST[:PORT] or smtps:// with the same")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return nil, errors.New("mail server: the port is no port")
		}
	}
	if from == "" {
		return nil, errors.New("mail server without a sender's address")
	}
	return &Mailer{server: u, from: from}, nil
}

// Send sends a text to all of the addresses, in one mail. Errors: ErrNoServer, an [*AddressError], those of the server.
func (m *Mailer) Send(ctx context.Context, subject, text string, to ...string) error {
	if m.server == nil {
		return ErrNoServer
	}
	msg := mail.NewMsg()
	if err := msg.From(m.from); err != nil {
		return fmt.Errorf("sender of notices: %w", err)
	}
	for _, address := range to {
		if err := msg.AddTo(address); err != nil {
			return &AddressError{address, err}
		}
	}
	msg.Subject(subject)
	msg.SetBodyString(mail.TypeTextPlain, text)
	client, err := mail.NewClient(m.server.Hostname(), m.options()...)
	if err != nil {
		return fmt.Errorf("mail server %s: %w", m.server.Host, err)
	}
	if err := client.DialAndSendWithContext(ctx, msg); err != nil {
		return fmt.Errorf("send a notice by %s: %w", m.server.Host, err)
	}
	return nil
}

func (m *Mailer) options() []mail.Option {
	options := []mail.Option{mail.WithTimeout(Timeout)}
	if m.server.Scheme == "smtps" {
		options = append(options, mail.WithSSLPort(false))
	} else {
		options = append(options, mail.WithTLSPortPolicy(mail.TLSOpportunistic))
	}
	if n, err := strconv.Atoi(m.server.Port()); err == nil {
		options = append(options, mail.WithPort(n))
	}
	if user := m.server.User; user != nil {
		password, _ := user.Password()
		options = append(options, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(user.Username()), mail.WithPassword(password))
	}
	return options
}

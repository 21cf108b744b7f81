package alert

import (
	"errors"
	"fmt"
	"net/mail"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/peltonq/pelton/internal/deliver"
)

// Types of channels.
const (
	Mail    = "mail"
	Webhook = "webhook"
	Slack   = "slack"
)

// Channel is a way to tell somebody.
type Channel struct {
	Name string
	Type string

	To   []string // mail
	From string   // mail; empty: Environment.MailFrom
	SMTP Reference

	URL    Reference // webhook, slack
	Secret Reference // webhook: signs what is sent; none: nothing is signed
}

// Reference is a value, or where it is: what is secret is not in the file of alerts.
type Reference struct {
	Value string
	Env   string // the name of a variable
	File  string // a path, if relative from the directory of the file of alerts
}

func (r Reference) given() (n int) {
	for _, s := range []string{r.Value, r.Env, r.File} {
		if s != "" {
			n++
		}
	}
	return n
}

// check says what is wrong with a channel, without looking at the values it refers to.
func (c *Channel) check() (faults []string) {
	add := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	for _, one := range []struct {
		name string
		ref  Reference
	}{{"url", c.URL}, {"smtp", c.SMTP}, {"secret", c.Secret}} {
		if one.ref.given() > 1 {
			add("%s is given more than once: want one of %s, %s_env and %s_file", one.name, one.name, one.name, one.name)
		}
	}
	if c.Type == Mail {
		if len(c.To) == 0 {
			add("has nobody to write to: want to, a list of addresses")
		}
		for _, to := range append(c.To, c.From) {
			if a, err := mail.ParseAddress(to); to != "" && (err != nil || strings.ContainsAny(a.Address, "\r\n")) {
				add("%q is no e-mail address", to)
			}
		}
		if v := c.SMTP.Value; v != "" {
			if _, err := deliver.NewMailer(v, "a@example.org"); err != nil {
				add("%v", err)
			} else if u, err := url.Parse(v); err == nil && hasPassword(u) {
				add("smtp holds a password, which does not belong here: give smtp_env or smtp_file")
			}
		}
		return faults
	}
	switch v := c.URL.Value; {
	case c.URL.given() == 0 && c.Type == Webhook:
		add("has no url: want url, url_env or url_file")
	case c.URL.given() == 0:
		add("has no url: want url_env or url_file")
	case v != "":
		u, err := parseURL(v)
		if err != nil {
			add("url: %v", err)
		} else if hasPassword(u) {
			add("url holds a password, which does not belong here: give url_env or url_file")
		}
	}
	return faults
}

func hasPassword(u *url.URL) bool {
	_, has := u.User.Password()
	return has
}

func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("want a URL with http:// or https://")
	}
	return u, nil
}

// Environment is what a file refers to outside of it.
type Environment struct {
	// Variable reads a variable of the environment; empty: it is not set.
	Variable func(name string) string

	// SMTP and MailFrom are the mail server and the sender for channels that name none.
	SMTP, MailFrom string
}

// Variables are the names of those that the channels of the file refer to: what they hold is secret.
func (f *File) Variables() (names []string) {
	for _, c := range f.Channels {
		for _, r := range []Reference{c.SMTP, c.URL, c.Secret} {
			if r.Env != "" {
				names = append(names, r.Env)
			}
		}
	}
	return names
}

// way is a channel with all that is needed to use it.
type way struct {
	Channel

	mailer *deliver.Mailer
	url    string
	secret string
}

// resolve reads what the channels of a file refer to. The error says all that is missing, and repeats no secrets.
func (f *File) resolve(env Environment) (map[string]*way, error) {
	ways := map[string]*way{}
	var faults []error
	for _, c := range f.Channels {
		w, err := f.resolveOne(c, env)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: channel %s: %w", f.Path, c.Name, err))
			continue
		}
		ways[c.Name] = w
	}
	return ways, errors.Join(faults...)
}

// CheckSecrets tells which of the variables and files that the channels refer to are missing or wrong here; nil: none.
func (f *File) CheckSecrets(env Environment) error {
	_, err := f.resolve(env)
	return err
}

func (f *File) resolveOne(c Channel, env Environment) (*way, error) {
	w := &way{Channel: c}
	var faults []error
	read := func(name string, r Reference, to *string) {
		v, err := f.read(r, env)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", name, err))
		}
		*to = v
	}
	if c.Type == Mail {
		server, from := env.SMTP, c.From
		if c.SMTP.given() > 0 {
			read("smtp", c.SMTP, &server)
		}
		if from == "" {
			from = env.MailFrom
		}
		if server == "" && len(faults) == 0 {
			faults = append(faults, errors.New("no mail server: give smtp, smtp_env or smtp_file, or set PELTON_SMTP_URL"))
		}
		if len(faults) == 0 {
			mailer, err := deliver.NewMailer(server, from)
			faults = append(faults, err)
			w.mailer = mailer
		}
		return w, errors.Join(faults...)
	}
	read("url", c.URL, &w.url)
	if len(faults) == 0 {
		if _, err := parseURL(w.url); err != nil {
			faults = append(faults, fmt.Errorf("url: %w", err))
		}
	}
	if c.Secret.given() > 0 {
		read("secret", c.Secret, &w.secret)
	}
	return w, errors.Join(faults...)
}

// read is the value of a reference, without the spaces and the line's end around it.
func (f *File) read(r Reference, env Environment) (string, error) {
	switch {
	case r.Env != "":
		v := ""
		if env.Variable != nil {
			v = strings.TrimSpace(env.Variable(r.Env))
		}
		if v == "" {
			return "", fmt.Errorf("variable %s is not set", r.Env)
		}
		return v, nil
	case r.File != "":
		path := r.File
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(f.Path), path)
		}
		data, err := os.ReadFile(path) //nolint:gosec // the file of alerts says which
		if err != nil {
			return "", err
		}
		v := strings.TrimSpace(string(data))
		if v == "" {
			return "", fmt.Errorf("file %s is empty", path)
		}
		return v, nil
	}
	return r.Value, nil
}

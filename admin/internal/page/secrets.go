package page

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/jobs/flow/secret"
)

type secretsPage struct {
	Secrets  []secretLine
	More     bool
	Project  string // that is shown; empty: all that may be seen
	Name     string // that the form begins with
	Sets     bool   // somewhere
	All      bool   // also for all projects
	Projects []string
	NoKey    bool
	BadKey   bool
}

// secretLine is a secret as the list shows it. Nothing on these pages has a value.
type secretLine struct {
	secret.Secret

	May         bool // change it
	Again, Gone string
}

var errNoKey = errors.New("this server has no key for secrets: start it with --secret-key-file")

func secretsPath(project string) string { return "/admin/secrets?project=" + url.QueryEscape(project) }

// secretRole checks a role for the secrets of a project; those for all projects need it for everything.
func secretRole(r *http.Request, role access.Role, project string) error {
	if project == secret.Everywhere {
		project = ""
	}
	return access.Check(r.Context(), role, project)
}

func (p *Page) showSecrets(w http.ResponseWriter, r *http.Request) error {
	shown := secretsPage{Project: strings.TrimSpace(r.URL.Query().Get("project")), Name: r.URL.Query().Get("name")}
	all, only := actor(r.Context()).Projects(access.Viewer)
	if shown.Project != "" {
		if err := secretRole(r, access.Viewer, shown.Project); err != nil {
			return err
		}
		all, only = false, []string{shown.Project}
	}
	ctx, cancel := p.limit(r.Context())
	defer cancel()
	params := secret.ListParams{Projects: append([]string{}, only...), Limit: adminShown + 1}
	if all {
		params.Projects = nil
	}
	found, err := p.config.Secrets.List(ctx, params)
	if err != nil {
		return err
	}
	for _, one := range found {
		if len(shown.Secrets) == adminShown {
			shown.More = true
			break
		}
		fields := url.Values{"project": {one.Project}, "name": {one.Name}}.Encode()
		shown.Secrets = append(shown.Secrets, secretLine{
			one, secretRole(r, access.Admin, one.Project) == nil, "/admin/secrets?" + fields + "#set", "/admin/secrets/delete?" + fields,
		})
	}
	shown.All, shown.Projects = actor(r.Context()).Projects(access.Admin)
	shown.Sets = shown.All || len(shown.Projects) > 0
	if shown.Sets {
		switch err := p.config.Secrets.Ready(); {
		case errors.Is(err, secret.ErrNoKey):
			shown.NoKey = true
		case err != nil:
			shown.BadKey = true
		}
	}
	return p.render(w, r, "secrets", "Secrets", shown)
}

func (p *Page) setSecret(w http.ResponseWriter, r *http.Request) error {
	project, name := strings.TrimSpace(r.PostFormValue("project")), strings.TrimSpace(r.PostFormValue("name"))
	if err := secretRole(r, access.Admin, project); err != nil {
		return err
	}
	value, err := secretValue(r)
	if err != nil {
		return err
	}
	set, err := p.config.Secrets.Set(r.Context(), project, name, value)
	if errors.Is(err, secret.ErrNoKey) {
		p.config.Logger.WarnContext(r.Context(), "a secret cannot be set", "error", err)
		return refused(errNoKey)
	}
	if err != nil {
		return told(err)
	}
	return p.done(w, r, secretsPath(set.Project), "Secret %s is set, version %d. Programs that begin from now on get it.", set.Name, set.Version)
}

// secretValue is the field, or the file without the end of its last line, as on the command line.
func secretValue(r *http.Request) ([]byte, error) {
	value := []byte(r.PostFormValue("value"))
	file, header, err := r.FormFile("file")
	switch {
	case errors.Is(err, http.ErrMissingFile), errors.Is(err, http.ErrNotMultipart):
		return value, nil
	case err != nil:
		return nil, badInput("the file cannot be read")
	}
	defer file.Close() //nolint:errcheck // only read
	switch {
	case len(value) > 0:
		return nil, badInput("want a value or a file, and not both")
	case header.Size > secret.MaxValue+2:
		return nil, badInput("the file has %d bytes; a secret has at most %d", header.Size, secret.MaxValue)
	}
	if value, err = io.ReadAll(file); err != nil {
		return nil, badInput("the file cannot be read")
	}
	text, hasEnd := strings.CutSuffix(string(value), "\n")
	if hasEnd {
		text = strings.TrimSuffix(text, "\r")
	}
	return []byte(text), nil
}

// rekeySecrets encrypts what older keys have encrypted with the newest one.
func (p *Page) rekeySecrets(w http.ResponseWriter, r *http.Request) error {
	done, err := p.config.Secrets.Rekey(r.Context())
	if errors.Is(err, secret.ErrNoKey) {
		return refused(errNoKey)
	}
	if err != nil {
		return told(err)
	}
	text := plural(done.Changed, "1 secret was", "%d secrets were") + " encrypted with the newest key, " + done.Key + "."
	if len(done.Left) > 0 {
		text += " Left as they are, since no key of this server opens them: " + strings.Join(done.Left, "; ")
	}
	return p.done(w, r, "/admin/secrets", "%s", text)
}

func (p *Page) askDeleteSecret(w http.ResponseWriter, r *http.Request) error {
	project, name := r.URL.Query().Get("project"), r.URL.Query().Get("name")
	if err := secretRole(r, access.Admin, project); err != nil {
		return err
	}
	ctx, cancel := p.limit(r.Context())
	defer cancel()
	found, err := p.config.Secrets.List(ctx, secret.ListParams{Projects: []string{project}})
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(found, func(s secret.Secret) bool { return s.Name == name }) {
		return notFound("there is no secret %s of that project", name)
	}
	whose := "project " + project
	if project == secret.Everywhere {
		whose = "all projects"
	}
	return p.confirm(w, r, "Delete the secret?", confirmation{
		Text:   "Secret " + name + " of " + whose + " will be removed for good. Nodes that need it fail from then on, unless there is another of that name.",
		Action: "/admin/secrets/delete", Button: "Delete the secret", Back: secretsPath(project),
		Fields: map[string]string{"project": project, "name": name},
	})
}

func (p *Page) deleteSecret(w http.ResponseWriter, r *http.Request) error {
	project, name := r.PostFormValue("project"), r.PostFormValue("name")
	if err := secretRole(r, access.Admin, project); err != nil {
		return err
	}
	if err := p.config.Secrets.Delete(r.Context(), project, name); err != nil {
		return told(err)
	}
	return p.done(w, r, secretsPath(project), "Secret %s is deleted.", name)
}

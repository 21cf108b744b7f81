package api

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/document"
	"github.com/peltonq/pelton/jobs/flow/secret"
)

// addSecrets adds secrets of flows. Values go in, and never out: no answer, problem or log has one, and they are under no Idempotency-Key.
func (s *server) addSecrets() {
	add(s, operation{
		id: "secrets-list", method: http.MethodGet, path: "/secrets", tag: "secrets", summary: "List secrets by project and name, without their values",
		detail: "Of the projects that you may see; those for all projects (*) need a role for everything.",
	}, s.secretsList)
	add(s, operation{
		id: "secrets-set", method: http.MethodPut, path: "/secrets/{project}/{name}", tag: "secrets", summary: "Give a secret a value, whether it is new or not",
		detail: "Needs an admin of the project; for all projects (*), of everything. Programs that begin later get the new value.",
	}, s.secretsSet)
	add(s, operation{
		id: "secrets-delete", method: http.MethodDelete, path: "/secrets/{project}/{name}", tag: "secrets", summary: "Delete a secret",
		detail: "Needs an admin of the project; for all projects (*), of everything.",
	}, s.secretsDelete)
	add(s, operation{
		id: "secrets-rekey", method: http.MethodPost, path: "/secrets/rekey", tag: "secrets", role: access.Admin, summary: "Encrypt all secrets with the newest key",
		detail: "The key file is the server's. What could not be decrypted is in left, and stays as it is.",
	}, s.secretsRekey)
}

// secretProject is the project whose roles count for a secret.
func secretProject(project string) string {
	if project == secret.Everywhere {
		return "" // what is for all needs a role for everything
	}
	return project
}

type secretsListInput struct {
	Paging

	Project string `query:"project" maxLength:"64" doc:"of this project; *: those for all"`
}

// secretPlace is where a page of secrets ends.
type secretPlace struct {
	Project string `json:"p"`
	Name    string `json:"n"`
}

func (s *server) secretsList(ctx context.Context, in *secretsListInput) (*answer[Page[secret.Secret]], error) {
	projects, err := viewed(ctx, secretProject(in.Project))
	if err != nil {
		return nil, err
	}
	if in.Project == secret.Everywhere {
		if err := access.Check(ctx, access.Viewer, ""); err != nil {
			return nil, err
		}
		projects = []string{in.Project}
	}
	const list = "secrets"
	after, err := positionOf[secretPlace](list, in.Cursor)
	if err != nil {
		return nil, err
	}
	p := secret.ListParams{Projects: projects, Limit: in.Limit + 1}
	if after != nil {
		p.After = &secret.Secret{Project: after.Project, Name: after.Name}
	}
	found, err := s.Secrets.List(ctx, p)
	if err != nil {
		return nil, err
	}
	for i := range found {
		found[i] = document.NewSecret(found[i])
	}
	return &answer[Page[secret.Secret]]{pageOf(list, found, in.Limit, func(one secret.Secret) any { return secretPlace{one.Project, one.Name} })}, nil
}

// SecretPath names a secret.
type SecretPath struct {
	Project string `path:"project" maxLength:"64" doc:"that the secret is for; * is all that have none of that name"`
	Name    string `path:"name" maxLength:"64" doc:"of the secret"`
}

// SecretValue is what a secret is to hold.
type SecretValue struct {
	Value string `json:"value" maxLength:"65536" doc:"4 bytes to 64 KiB of text; it is never told again"`
}

type secretInput struct {
	SecretPath

	Body SecretValue
}

func (s *server) secretsSet(ctx context.Context, in *secretInput) (*answer[secret.Secret], error) {
	if err := access.Check(ctx, access.Admin, secretProject(in.Project)); err != nil {
		return nil, err
	}
	if strings.ContainsRune(in.Body.Value, '\uFFFD') {
		return nil, invalid("body.value", "holds bytes that are no UTF-8, or U+FFFD, which stands for such: set it by pelton secret set")
	}
	set, err := s.Secrets.Set(ctx, in.Project, in.Name, []byte(in.Body.Value))
	return answered(document.NewSecret(set), s.withoutKey(ctx, err))
}

func (s *server) secretsDelete(ctx context.Context, in *SecretPath) (*answer[document.SecretDeleted], error) {
	if err := access.Check(ctx, access.Admin, secretProject(in.Project)); err != nil {
		return nil, err
	}
	err := s.Secrets.Delete(ctx, in.Project, in.Name)
	return answered(document.SecretDeleted{Project: in.Project, Name: in.Name, Deleted: true}, err)
}

func (s *server) secretsRekey(ctx context.Context, _ *struct{}) (*answer[secret.Rekeyed], error) {
	done, err := s.Secrets.Rekey(ctx)
	return answered(done, s.withoutKey(ctx, err))
}

// withoutKey says what to do about a missing key. Which file is missing is for the log.
func (s *server) withoutKey(ctx context.Context, err error) error {
	if !errors.Is(err, secret.ErrNoKey) {
		return err
	}
	s.Logger.WarnContext(ctx, "api: secrets cannot be set", "error", err)
	return newProblem("no-secret-key", "this server has no key for secrets: start it with --secret-key-file, see docs/operations.md")
}

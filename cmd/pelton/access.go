package main

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/pflag"

	"github.com/peltonq/pelton/admin"
	"github.com/peltonq/pelton/admin/access"
)

// accessSettings say who may use the page and the API of a server, and how it is reached.
type accessSettings struct {
	wanted      bool // there is a page
	tlsCert     string
	tlsKey      string
	behindProxy bool
	publicURL   string

	oidc       access.OIDC
	oidcGroups []string
}

// oidcSecretVariable holds what the provider of logins knows this program by.
const oidcSecretVariable = "PELTON_OIDC_CLIENT_SECRET" //nolint:gosec // a name

// flags are those of commands that have a page.
func (s *accessSettings) flags(f *pflag.FlagSet) {
	s.wanted = true
	f.StringVar(&s.tlsCert, "tls-cert", "", "`file` of the certificate; read again when it has changed")
	f.StringVar(&s.tlsKey, "tls-key", "", "`file` of the certificate's key")
	f.BoolVar(&s.behindProxy, "behind-proxy", false,
		"a proxy that speaks TLS is before this server: believe its X-Forwarded-For and X-Forwarded-Proto")
	f.StringVar(&s.publicURL, "public-url", "", "`URL` under which browsers reach this server, as https://pelton.example.com")
	f.StringVar(&s.oidc.Issuer, "oidc-issuer", "", "`URL` of an OpenID Connect provider for logins (its secret: env "+oidcSecretVariable+")")
	f.StringVar(&s.oidc.ClientID, "oidc-client-id", "", "`id` of this server at the provider")
	f.StringVar(&s.oidc.NameClaim, "oidc-name-claim", "", "`claim` that names a new user (default preferred_username)")
	f.StringVar(&s.oidc.GroupsClaim, "oidc-groups-claim", "", "`claim` that lists a user's groups (default groups)")
	f.StringSliceVar(&s.oidc.Scopes, "oidc-scopes", nil, "`scopes` to ask for beside openid (default profile,email,groups)")
	f.StringArrayVar(&s.oidcGroups, "oidc-group", nil, "`GROUP=ROLE[@PROJECT]`: what members of a group may do; may be given again")
}

// provider is the provider of logins; nil: none.
func (s *accessSettings) provider(a *app) (*access.OIDC, error) {
	if s.oidc.Issuer == "" {
		if s.oidc.ClientID != "" || len(s.oidcGroups) > 0 {
			return nil, usagef("--oidc-client-id and --oidc-group need --oidc-issuer")
		}
		return nil, nil //nolint:nilnil // documented above
	}
	provider := s.oidc
	provider.ClientSecret = a.env(oidcSecretVariable)
	for _, text := range s.oidcGroups {
		group, given, _ := cutLast(text, "=")
		grant, err := parseGrant(given)
		if group == "" || err != nil {
			return nil, usagef("--oidc-group %q: want GROUP=ROLE or GROUP=ROLE@PROJECT: %w", text, cmp.Or(err, errors.New("no group")))
		}
		provider.Groups = append(provider.Groups, access.GroupRole{Group: group, Grant: grant})
	}
	return &provider, nil
}

// cutLast is strings.Cut at the last place: groups may hold = signs (cn=ops,dc=example).
func cutLast(text, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(text, sep); i >= 0 {
		return text[:i], text[i+len(sep):], true
	}
	return text, "", false
}

// parseGrant reads ROLE or ROLE@PROJECT.
func parseGrant(text string) (access.Grant, error) {
	name, project, some := strings.Cut(text, "@")
	role, err := access.ParseRole(name)
	if !some {
		project = access.Everything
	}
	return access.Grant{Project: project, Role: role}, err
}

// check refuses what the flags cannot mean.
func (s *accessSettings) check() error {
	if (s.tlsCert == "") != (s.tlsKey == "") {
		return usagef("--tls-cert and --tls-key belong together")
	}
	return nil
}

// configure puts the settings into a server's configuration.
func (s *accessSettings) configure(a *app, pool *pgxpool.Pool, config *admin.Config) (err error) {
	if !s.wanted {
		return nil
	}
	if config.Access, err = access.NewStore(pool, access.Config{Schema: a.schemaName()}); err != nil {
		return err
	}
	config.TLSCert, config.TLSKey = s.tlsCert, s.tlsKey
	config.BehindProxy, config.PublicURL = s.behindProxy, s.publicURL
	config.OIDC, err = s.provider(a)
	return err
}

// tell says on the log what somebody should know who runs a server without users.
func (s *accessSettings) tell(ctx context.Context, a *app, store *access.Store, onlyHere bool) {
	if !s.wanted {
		return
	}
	log := a.logger(levelServe)
	known, err := store.Known(ctx)
	switch {
	case err != nil:
		log.WarnContext(ctx, "users cannot be read: nobody can log in", "error", err)
	case !known.Anyone && onlyHere && a.isDev: // as it is meant to be
	case !known.Anyone && onlyHere:
		log.InfoContext(ctx, "there are no users: whoever is on this machine may do everything; "+
			"`pelton user add NAME --role admin` adds one, and ends that")
	case !known.Anyone && s.oidc.Issuer == "":
		log.WarnContext(ctx, "there are no users, so nobody can log in: pelton user add NAME --role admin")
	}
}

// explainListen says what to do about an address that is refused.
func explainListen(err error) error {
	switch {
	case errors.Is(err, admin.ErrNoAdmin):
		return usagef("endpoint: %w: add one with `pelton user add NAME --role admin`, or use 127.0.0.1", err)
	case errors.Is(err, admin.ErrInsecureListen):
		return usagef("endpoint: %w: give --tls-cert and --tls-key, or --behind-proxy if a proxy before it speaks TLS; use 127.0.0.1; "+
			"or allow it with --insecure-listen", err)
	}
	return nil
}

package access

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// CallbackPath is where a provider of OIDC sends browsers back to: register the public URL with this path there.
const CallbackPath = "/login/oidc/callback"

// OIDC is a provider that vouches for users.
type OIDC struct {
	Issuer       string // its URL
	ClientID     string
	ClientSecret string   // empty: a public client, which PKCE protects
	Scopes       []string // beside openid; defaults to profile, email and groups

	// NameClaim is the claim that names a user who is made. Defaults to preferred_username.
	NameClaim string

	// GroupsClaim is the claim that lists groups. Defaults to groups.
	GroupsClaim string

	// Groups says what groups give.
	Groups []GroupRole
}

// GroupRole is what the members of a group may do.
type GroupRole struct {
	Group string
	Grant Grant
}

func (o *OIDC) withDefaults() *OIDC {
	c := *o
	if c.Scopes == nil {
		c.Scopes = []string{"profile", "email", "groups"}
	}
	if c.NameClaim == "" {
		c.NameClaim = "preferred_username"
	}
	if c.GroupsClaim == "" {
		c.GroupsClaim = "groups"
	}
	return &c
}

func (o *OIDC) check() error {
	var faults []error
	u, err := url.Parse(o.Issuer)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		faults = append(faults, fmt.Errorf("issuer %q: want a URL, as https://login.example.com", o.Issuer))
	}
	if o.ClientID == "" {
		faults = append(faults, errors.New("client id is empty"))
	}
	for _, g := range o.Groups {
		if g.Group == "" {
			faults = append(faults, errors.New("name of a group is empty"))
		}
		faults = append(faults, checkGrant(g.Grant))
	}
	return errors.Join(faults...)
}

// GivesAdmin tells whether members of some group are admins of everything.
func (o *OIDC) GivesAdmin() bool {
	return slices.ContainsFunc(o.Groups, func(g GroupRole) bool { return g.Grant == Grant{Project: Everything, Role: Admin} })
}

// grants are what groups give: of each project the highest role.
func (o *OIDC) grants(groups []string) []Grant {
	highest := map[string]Role{}
	for _, g := range o.Groups {
		if slices.Contains(groups, g.Group) {
			highest[g.Grant.Project] = max(highest[g.Grant.Project], g.Grant.Role)
		}
	}
	var all []Grant
	for project, role := range highest {
		all = append(all, Grant{Project: project, Role: role})
	}
	return all
}

// providerTimeout bounds each request to a provider.
const providerTimeout = 10 * time.Second

// relying is the side of OIDC that relies on a provider. The provider is asked for its addresses when first needed, so that a
// server starts without it.
type relying struct {
	config   *OIDC
	redirect string
	client   *http.Client

	mu       sync.Mutex
	provider *oidc.Provider
}

func newRelying(config *OIDC, public *url.URL) *relying {
	return &relying{
		config: config.withDefaults(), redirect: public.JoinPath(CallbackPath).String(), client: &http.Client{Timeout: providerTimeout},
	}
}

// endpoint finds the provider.
func (r *relying) endpoint(ctx context.Context) (*oauth2.Config, *oidc.Provider, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.provider == nil {
		p, err := oidc.NewProvider(oidc.ClientContext(ctx, r.client), r.config.Issuer)
		if err != nil {
			return nil, nil, fmt.Errorf("provider of OIDC: %w", err)
		}
		r.provider = p
	}
	return &oauth2.Config{
		ClientID: r.config.ClientID, ClientSecret: r.config.ClientSecret, Endpoint: r.provider.Endpoint(), RedirectURL: r.redirect,
		Scopes: append([]string{oidc.ScopeOpenID}, r.config.Scopes...),
	}, r.provider, nil
}

// journey is what a browser keeps while it is away at the provider. It is bound to the browser by a cookie that other sites cannot set or
// read, so that nobody is logged in with somebody else's code.
type journey struct {
	State    string    `json:"s"`
	Nonce    string    `json:"n"`
	Verifier string    `json:"v"`
	Next     string    `json:"x"`
	Until    time.Time `json:"u"`
}

// journeyTime is how long somebody may take to log in at the provider.
const journeyTime = 10 * time.Minute

func (j journey) encode() string {
	b, err := json.Marshal(j)
	if err != nil {
		panic(err) // texts and a time
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

func decodeJourney(text string) (j journey, err error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(b, &j)
	}
	if err != nil || j.State == "" || j.Nonce == "" || j.Verifier == "" || time.Now().After(j.Until) {
		return journey{}, errJourney
	}
	return j, nil
}

var errJourney = errors.New("this login was begun elsewhere, or too long ago; begin again")

// depart begins a login, and returns where to send the browser.
func (r *relying) depart(ctx context.Context, next string) (j journey, to string, err error) {
	config, _, err := r.endpoint(ctx)
	if err != nil {
		return journey{}, "", err
	}
	state, _ := newSecret("")
	nonce, _ := newSecret("")
	j = journey{State: state, Nonce: nonce, Verifier: oauth2.GenerateVerifier(), Next: next, Until: time.Now().Add(journeyTime)}
	return j, config.AuthCodeURL(state, oidc.Nonce(nonce), oauth2.S256ChallengeOption(j.Verifier)), nil
}

// arrive turns what a provider sent back into who it vouches for.
func (r *relying) arrive(ctx context.Context, j journey, query url.Values) (vouched, error) {
	if subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(j.State)) != 1 {
		return vouched{}, errJourney
	}
	if iss := query.Get("iss"); iss != "" && iss != r.config.Issuer { // RFC 9207: another provider's answer
		return vouched{}, errJourney
	}
	if query.Get("error") != "" {
		return vouched{}, &providerError{query.Get("error")}
	}
	config, provider, err := r.endpoint(ctx)
	if err != nil {
		return vouched{}, err
	}
	ctx = oidc.ClientContext(ctx, r.client)
	token, err := config.Exchange(ctx, query.Get("code"), oauth2.VerifierOption(j.Verifier))
	if err != nil {
		return vouched{}, fmt.Errorf("provider of OIDC: exchange of the code: %w", err)
	}
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return vouched{}, errors.New("provider of OIDC: no id_token in its answer")
	}
	id, err := provider.Verifier(&oidc.Config{ClientID: r.config.ClientID}).Verify(ctx, raw)
	if err != nil {
		return vouched{}, fmt.Errorf("provider of OIDC: %w", err)
	}
	if subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(j.Nonce)) != 1 {
		return vouched{}, errJourney
	}
	claims := map[string]any{}
	if err := id.Claims(&claims); err != nil {
		return vouched{}, fmt.Errorf("provider of OIDC: claims: %w", err)
	}
	name, _ := claims[r.config.NameClaim].(string)
	if r.config.NameClaim == "email" && claims["email_verified"] != true {
		name = "" // anybody may have written it
	}
	return vouched{issuer: id.Issuer, subject: id.Subject, name: name, roles: r.config.grants(texts(claims[r.config.GroupsClaim]))}, nil
}

// texts reads a claim that is a text or a list of them.
func texts(claim any) []string {
	switch v := claim.(type) {
	case string:
		return []string{v}
	case []any:
		var all []string
		for _, one := range v {
			if text, ok := one.(string); ok {
				all = append(all, text)
			}
		}
		return all
	}
	return nil
}

// providerError is a refusal of the provider's: access_denied and the like.
type providerError struct{ code string }

func (e *providerError) Error() string { return fmt.Sprintf("the login provider says %q", e.code) }

package access_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"
)

// provider is a stub of an OIDC provider: it asks nobody, and vouches for whom the test names.
type provider struct {
	*httptest.Server
	t   *testing.T
	key *rsa.PrivateKey

	mu     sync.Mutex
	asked  map[string]url.Values // what an authorization asked for, by code
	claims map[string]any        // of the next tokens; they overrule what a token has anyway
	forge  bool                  // sign with another key
	refuse string                // the error to send browsers back with
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{t: t, key: key, asked: map[string]url.Values{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		p.json(w, http.StatusOK, map[string]any{
			"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256"},
		})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		p.json(w, http.StatusOK, map[string]any{"keys": []any{map[string]any{
			"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "1", "n": text64(p.key.N.Bytes()), "e": text64(big.NewInt(int64(p.key.E)).Bytes()),
		}}})
	})
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

func text64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func (p *provider) json(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		p.t.Error(err)
	}
}

// vouch sets the claims of the next tokens.
func (p *provider) vouch(claims map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claims = claims
}

func (p *provider) authorize(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := r.URL.Query()
	back, err := url.Parse(q.Get("redirect_uri"))
	if err != nil {
		p.t.Error(err)
	}
	answer := url.Values{"state": q["state"]}
	if p.refuse != "" {
		answer.Set("error", p.refuse)
	} else {
		code := rand.Text()
		p.asked[code] = q
		answer.Set("code", code)
	}
	back.RawQuery = answer.Encode()
	http.Redirect(w, r, back.String(), http.StatusSeeOther)
}

// token exchanges a code once, for who knows the verifier that its challenge was made of.
func (p *provider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q, known := p.asked[r.PostFormValue("code")]
	delete(p.asked, r.PostFormValue("code"))
	challenge := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if !known || q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") != text64(challenge[:]) {
		p.json(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant"})
		return
	}
	claims := map[string]any{
		"iss": p.URL, "aud": q.Get("client_id"), "nonce": q.Get("nonce"), "iat": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix(),
	}
	maps.Copy(claims, p.claims)
	p.json(w, http.StatusOK, map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": p.sign(claims)})
}

func (p *provider) sign(claims map[string]any) string {
	body, err := json.Marshal(claims)
	if err != nil {
		p.t.Error(err)
	}
	signed := text64([]byte(`{"alg":"RS256","kid":"1"}`)) + "." + text64(body)
	sum := sha256.Sum256([]byte(signed))
	key := p.key
	if p.forge {
		if key, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
			p.t.Error(err)
		}
	}
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		p.t.Error(err)
	}
	return signed + "." + text64(signature)
}

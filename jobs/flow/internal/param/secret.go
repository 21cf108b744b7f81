package param

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// SecretPrefix begins the names of secrets, ${secret.NAME}. No scope has parameters of such names.
const SecretPrefix = "secret."

var secretName = regexp.MustCompile(`\A[a-zA-Z_][a-zA-Z0-9_]{0,63}\z`)

// IsSecretName tells whether a secret can be called so.
func IsSecretName(name string) bool { return secretName.MatchString(name) }

// Names returns the names that a text refers to, secrets among them, in their order.
func Names(text string) (names []string) {
	for {
		_, name, after := cutReference(text)
		if name == "" {
			return names
		}
		names, text = append(names, name), after
	}
}

// Secrets returns the names of the secrets that a text refers to itself.
func Secrets(text string) (names []string) {
	for _, name := range Names(text) {
		if secret, is := strings.CutPrefix(name, SecretPrefix); is {
			names = append(names, secret)
		}
	}
	return names
}

// LeadsToSecret returns the secret that a text of these scopes refers to, maybe through other parameters; "" if none. Who must know the rest of the
// scopes first, as outputs, does not find all: Resolve does.
func LeadsToSecret(texts map[string]string, text string) string {
	seen := map[string]bool{}
	for todo := []string{text}; len(todo) > 0; {
		text, todo = todo[0], todo[1:]
		for _, name := range Names(text) {
			if secret, is := strings.CutPrefix(name, SecretPrefix); is {
				return secret
			}
			if inner, defined := texts[name]; defined && !seen[name] {
				seen[name] = true
				todo = append(todo, inner)
			}
		}
	}
	return ""
}

// Mark tells references to secrets in resolved texts, as ${secret.NAME:MARK}, from what data and outputs may hold. It is random, so that nobody could
// have written one before. "": there are none.
type Mark string

func newMark() Mark {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return Mark(hex.EncodeToString(b[:]))
}

func (m Mark) end() string { return ":" + string(m) + "}" }

func (m Mark) reference(name string) string { return "${" + SecretPrefix + name + m.end() }

// In tells whether a resolved text refers to secrets.
func (m Mark) In(text string) bool { return m != "" && strings.Contains(text, m.end()) }

// Fill replaces each reference of a resolved text by what put returns for the secret's name and for the text before the reference.
func (m Mark) Fill(text string, put func(name, before string) string) string {
	if !m.In(text) {
		return text
	}
	var out strings.Builder
	for from := 0; ; {
		before, after, found := strings.Cut(text[from:], m.end())
		start := strings.LastIndex(before, "${"+SecretPrefix)
		if !found || start < 0 {
			out.WriteString(text[from:])
			return out.String()
		}
		out.WriteString(before[:start])
		out.WriteString(put(before[start+len("${"+SecretPrefix):], text[:from+start]))
		from = len(text) - len(after)
	}
}

// Names returns the names of the secrets that resolved texts refer to, each once, sorted.
func (m Mark) Names(texts ...string) (names []string) {
	for _, text := range texts {
		m.Fill(text, func(name, _ string) string {
			names = append(names, name)
			return ""
		})
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// secret returns what stands for a secret in resolved texts.
func (r *resolver) secret(name string) (string, error) {
	if !IsSecretName(name) {
		return "", fmt.Errorf("secret.%s: want up to 64 letters, digits and _ behind secret., the first no digit (%s)", name, strings.Join(r.chain, " -> "))
	}
	if r.mark == "" {
		r.mark = newMark()
	}
	return r.mark.reference(name), nil
}

// ClosedError says that something which is no part of a project would have a secret put in.
type ClosedError struct{ Name, From string }

func (e *ClosedError) Error() string {
	return fmt.Sprintf("parameter %s refers to a secret, and only what a project's own files say may do so, not %s", e.Name, e.From)
}

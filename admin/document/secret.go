package document

import "github.com/peltonq/pelton/jobs/flow/secret"

// NewSecret shows a secret, of which nobody is shown the value.
func NewSecret(s secret.Secret) secret.Secret {
	s.SetAt = s.SetAt.UTC()
	return s
}

// SecretDeleted is a secret that is gone.
type SecretDeleted struct {
	Project string `json:"project"`
	Name    string `json:"name"`
	Deleted bool   `json:"deleted"`
}

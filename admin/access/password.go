package access

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"golang.org/x/crypto/argon2"
)

// Lengths of passwords.
const (
	minPassword = 10   // characters
	maxPassword = 1024 // bytes
)

func checkPassword(password string) error {
	if len([]rune(password)) < minPassword || len(password) > maxPassword {
		return invalidf("password: want at least %d characters and at most %d bytes", minPassword, maxPassword)
	}
	return nil
}

// cost are the parameters of argon2id.
type cost struct {
	memory  uint32 // KiB
	passes  uint32
	threads uint8
}

// Costs: of hashes that are made, and the most that a stored one may ask for.
var (
	usualCost   = cost{memory: 32 << 10, passes: 3, threads: 1}
	highestCost = cost{memory: 1 << 20, passes: 20, threads: 16}
)

const (
	saltBytes = 16
	keyBytes  = 32

	// hashesAtOnce bounds the memory that logins take together; further ones wait.
	hashesAtOnce = 4
)

// hasher computes hashes of passwords, some at a time.
type hasher struct {
	cost   cost
	line   *line
	nobody string // the hash that a password is compared with where there is none

	computed atomic.Int64 // for tests: hashes so far
}

func newHasher(c cost) *hasher {
	h := &hasher{cost: c, line: newLine(hashesAtOnce)}
	h.nobody = encodeHash(c, randomBytes(saltBytes), randomBytes(keyBytes))
	return h
}

// hash makes a PHC string of a password: $argon2id$v=19$m=..,t=..,p=..$salt$key.
func (h *hasher) hash(ctx context.Context, password string) (string, error) {
	salt := randomBytes(saltBytes)
	key, err := h.compute(ctx, caller{}, password, h.cost, salt, keyBytes)
	if err != nil {
		return "", err
	}
	return encodeHash(h.cost, salt, key), nil
}

// matches compares a password with a PHC string. Without one (""), the same work is done and nothing matches. An
// *unjudgedError: nothing was compared.
func (h *hasher) matches(ctx context.Context, who caller, password, stored string) (bool, error) {
	against := stored
	if stored == "" {
		against = h.nobody
	}
	c, salt, want, err := decodeHash(against)
	if err != nil {
		return false, err
	}
	key, err := h.compute(ctx, who, password, c, salt, uint32(len(want))) //nolint:gosec // decodeHash bounds it
	if err != nil {
		return false, err
	}
	return subtle.ConstantTimeCompare(key, want) == 1 && stored != "", nil
}

// unjudgedError says that a password was not looked at.
type unjudgedError struct{ err error }

func (e *unjudgedError) Error() string { return e.err.Error() }
func (e *unjudgedError) Unwrap() error { return e.err }

func (h *hasher) compute(ctx context.Context, who caller, password string, c cost, salt []byte, n uint32) ([]byte, error) {
	if err := h.line.enter(ctx, who); err != nil {
		return nil, &unjudgedError{&unavailableError{"too many log in at this moment, try again in a minute", err}}
	}
	defer h.line.leave(who)
	h.computed.Add(1)
	return argon2.IDKey([]byte(password), salt, c.passes, c.memory, c.threads, n), nil
}

func encodeHash(c cost, salt, key []byte) string {
	text := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, c.memory, c.passes, c.threads, text(salt), text(key))
}

var errHash = errors.New("stored password: not an argon2id hash that this program knows; set the password again")

func decodeHash(stored string) (c cost, salt, key []byte, err error) {
	parts := strings.Split(stored, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return cost{}, nil, nil, errHash
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &c.memory, &c.passes, &c.threads); err != nil {
		return cost{}, nil, nil, errHash
	}
	salt, saltErr := base64.RawStdEncoding.DecodeString(parts[4])
	key, keyErr := base64.RawStdEncoding.DecodeString(parts[5])
	switch {
	case saltErr != nil, keyErr != nil, len(salt) < 8, len(key) < 16, len(key) > 128,
		c.passes < 1, c.threads < 1, c.memory < 8, c.memory > highestCost.memory, c.passes > highestCost.passes, c.threads > highestCost.threads:
		return cost{}, nil, nil, errHash
	}
	return c, salt, key, nil
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return b
}

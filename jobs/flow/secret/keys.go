package secret

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// ErrNoKey says that a key is not there: none at all, or not the one that a secret needs.
var ErrNoKey = errors.New("no key for secrets")

// keyBytes makes it AES-256.
const keyBytes = 32

// Source is where keys come from. It is asked at each use.
type Source interface {
	Keys() (*Keys, error)
}

// KeyFile is the path of a file of keys: one a line, in base64, the newest last; # begins a comment. Empty: there is none.
type KeyFile string

// Keys reads the file. Without one the error is ErrNoKey.
func (f KeyFile) Keys() (*Keys, error) {
	if f == "" {
		return nil, fmt.Errorf("%w: no key file is given", ErrNoKey)
	}
	text, err := os.ReadFile(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: the key file %s does not exist", ErrNoKey, f)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoKey, err)
	}
	keys, err := ParseKeys(text)
	if err != nil {
		return nil, fmt.Errorf("key file %s: %w", f, err)
	}
	return keys, nil
}

// Keys encrypt with the last of them, and decrypt with any.
type Keys struct {
	newest string
	byID   map[string]cipher.AEAD
}

// NewKey makes a line for a key file.
func NewKey() string {
	key := make([]byte, keyBytes)
	_, _ = rand.Read(key) // it never fails
	return base64.StdEncoding.EncodeToString(key)
}

// ParseKeys reads what a KeyFile holds. Errors name lines, never what is in them.
func ParseKeys(text []byte) (*Keys, error) {
	keys := &Keys{byID: map[string]cipher.AEAD{}}
	for i, line := range bytes.Split(text, []byte("\n")) {
		line, _, _ = bytes.Cut(line, []byte("#"))
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		key, err := base64.StdEncoding.DecodeString(string(line))
		if err != nil || len(key) != keyBytes {
			return nil, fmt.Errorf("line %d is no key: want 32 bytes in base64, as pelton secret key makes them", i+1)
		}
		keys.newest, err = keys.add(key)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	if keys.newest == "" {
		return nil, fmt.Errorf("%w: it is empty", ErrNoKey)
	}
	return keys, nil
}

func (k *Keys) add(key []byte) (id string, err error) {
	hash := sha256.Sum256(append([]byte("pelton secret key\x00"), key...))
	id = hex.EncodeToString(hash[:6])
	block, err := aes.NewCipher(key)
	if err != nil {
		return "", err
	}
	k.byID[id], err = cipher.NewGCM(block)
	return id, err
}

// Newest is the id of the key that encrypts. An id tells keys apart and nothing else of them.
func (k *Keys) Newest() string { return k.newest }

// sealed is an encrypted value.
type sealed struct {
	Key   string
	Nonce []byte
	Value []byte
}

// place is what a value is for. It is authenticated with the value.
type place struct {
	project, name string
	version       int32
}

func (p place) bytes() []byte {
	return fmt.Appendf(nil, "pelton secret\x00%s\x00%s\x00%d", p.project, p.name, p.version)
}

// String is what people call a secret.
func (p place) String() string {
	if p.project == Everywhere {
		return "secret " + p.name
	}
	return "secret " + p.project + "/" + p.name
}

// seal encrypts with the newest key.
func (k *Keys) seal(p place, value []byte) sealed {
	aead := k.byID[k.newest]
	nonce := make([]byte, aead.NonceSize())
	_, _ = rand.Read(nonce) // it never fails
	return sealed{k.newest, nonce, aead.Seal(nil, nonce, value, p.bytes())}
}

// open decrypts what was sealed for the same place.
func (k *Keys) open(p place, s sealed) ([]byte, error) {
	aead, known := k.byID[s.Key]
	if !known {
		return nil, fmt.Errorf("%s: %w: it was encrypted with key %s, and the keys at hand are %s", p, ErrNoKey, s.Key, k)
	}
	if len(s.Nonce) != aead.NonceSize() {
		return nil, fmt.Errorf("%s: its row was changed: set it again", p)
	}
	value, err := aead.Open(nil, s.Nonce, s.Value, p.bytes())
	if err != nil {
		return nil, fmt.Errorf("%s: its row was changed, or is that of another secret: set it again", p)
	}
	return value, nil
}

// String lists ids, the newest last.
func (k *Keys) String() string {
	ids := make([]string, 0, len(k.byID))
	for id := range k.byID {
		if id != k.newest {
			ids = append(ids, id)
		}
	}
	return strings.Join(append(ids, k.newest), ", ")
}

package nodecmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"unicode/utf8"

	"github.com/peltonq/pelton/jobs/flow/internal/param"
)

// MaxOutputs bounds the outputs file.
const MaxOutputs = 1 << 20

// ErrBadOutputs is wrapped by errors about what a program wrote into its outputs file.
var ErrBadOutputs = errors.New("bad outputs file (JOB_OUTPUT_PROP_FILE)")

// readOutputs reads a node's outputs. A file that is empty or was removed has none.
func readOutputs(path string) (map[string]string, error) {
	// The program may have put anything there; a pipe must not hold the worker up.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadOutputs, err)
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%w: it is not a regular file any more", ErrBadOutputs), err)
	}
	data, err := io.ReadAll(io.LimitReader(file, MaxOutputs+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrBadOutputs, err)
	case len(data) > MaxOutputs:
		return nil, fmt.Errorf("%w: it has more than %d bytes", ErrBadOutputs, MaxOutputs)
	}
	return parseOutputs(data)
}

// parseOutputs reads a JSON object, whose values are outputs as those of any job are.
func parseOutputs(data []byte) (map[string]string, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, nil
	}
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("%w: it is not UTF-8", ErrBadOutputs)
	}
	var object map[string]json.RawMessage
	err := json.Unmarshal(data, &object)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return nil, fmt.Errorf("%w: line %d: %w", ErrBadOutputs, 1+bytes.Count(data[:syntax.Offset], []byte("\n")), err)
	case err != nil || object == nil:
		return nil, fmt.Errorf("%w: want a JSON object, as {\"name\": \"value\"}", ErrBadOutputs)
	}
	outputs, err := param.Outputs(object)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadOutputs, err)
	}
	return outputs, nil
}

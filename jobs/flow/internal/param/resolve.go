package param

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Limits of what is resolved.
const (
	MaxValue = 1 << 20  // bytes of one value
	MaxTotal = 16 << 20 // bytes of all of a node's names and values

	maxChain  = 1000 // names that refer to each other in turn
	maxFaults = 10   // errors that are told at once
)

// UndefinedError says that a text refers to a parameter that no scope has.
type UndefinedError struct {
	Name  string   // the parameter
	Chain []string // who refers to whom, Name last
}

func (e *UndefinedError) Error() string {
	return fmt.Sprintf("parameter %s is not defined (%s)", e.Name, strings.Join(e.Chain, " -> "))
}

// CycleError says that parameters refer to each other in a circle.
type CycleError struct {
	Chain []string // the first and the last are the same
}

func (e *CycleError) Error() string {
	return fmt.Sprintf("parameters refer to each other in a circle (%s)", strings.Join(e.Chain, " -> "))
}

// Resolve returns the parameters of a node, with everything that their texts refer to put in. Those that refer to secrets are left out. It returns all
// faults that it finds, up to a few.
func Resolve(scopes Scopes) (map[string]string, error) {
	resolved, mark, err := ResolveMarked(scopes)
	if mark != "" {
		maps.DeleteFunc(resolved, func(_, value string) bool { return mark.In(value) })
	}
	return resolved, err
}

// ResolveMarked is Resolve, with the parameters that refer to secrets: the references stay in them, with a mark.
func ResolveMarked(scopes Scopes) (map[string]string, Mark, error) {
	r := newResolver(scopes)
	resolved := make(map[string]string, len(r.texts))
	var faults []error
	total := 0
	for _, name := range slices.Sorted(maps.Keys(r.texts)) {
		value, err := r.value(name)
		if err != nil {
			if !r.told(err) {
				faults = append(faults, err)
			}
			if len(faults) == maxFaults {
				break
			}
			continue
		}
		if total += len(name) + len(value); total > MaxTotal {
			return nil, "", fmt.Errorf("the parameters have more than %d bytes together", MaxTotal)
		}
		resolved[name] = value
	}
	if faults != nil {
		return nil, "", errors.Join(faults...)
	}
	return resolved, r.mark, nil
}

// ResolveText returns a text that no scope has, with everything that it refers to put in; secrets are refused. name is what errors call it.
func ResolveText(scopes Scopes, name, text string) (string, error) {
	r := newResolver(scopes)
	r.texts[name], r.open[name] = text, true
	delete(r.data, name)
	value, err := r.value(name)
	if err == nil && r.mark.In(value) {
		return "", fmt.Errorf("%s: a secret cannot be used here", name)
	}
	return value, err
}

// resolver resolves the texts of one node. It keeps what it has replaced, so each text is read once.
type resolver struct {
	scopes   Scopes
	texts    map[string]string
	data     map[string]bool   // those whose texts are data
	open     map[string]bool   // those whose texts may refer to secrets
	mark     Mark              // of references to secrets; "": none was met
	empty    bool              // what is not defined is an empty list
	replaced map[string]string // ${} put in, arithmetic not done yet
	kept     int               // bytes of replaced
	chain    []string          // the names that are being replaced
	refused  map[string]bool   // names that must not refer to secrets and do
	circles  map[string]bool   // names on cycles that were found
}

// told tells whether an error is about what another parameter led to already.
func (r *resolver) told(err error) bool {
	if closed, ok := errors.AsType[*ClosedError](err); ok {
		known := r.refused[closed.Name]
		if r.refused == nil {
			r.refused = map[string]bool{}
		}
		r.refused[closed.Name] = true
		return known
	}
	cycle, ok := errors.AsType[*CycleError](err)
	if !ok {
		return false
	}
	known := r.circles[cycle.Chain[0]]
	if r.circles == nil {
		r.circles = map[string]bool{}
	}
	for _, name := range cycle.Chain {
		r.circles[name] = true
	}
	return known
}

func newResolver(scopes Scopes) *resolver {
	r := &resolver{scopes: scopes, texts: scopes.Merge(), data: map[string]bool{}, open: map[string]bool{}, replaced: map[string]string{}}
	for _, scope := range scopes {
		r.empty = r.empty || scope.Empty
		for name := range scope.Values {
			r.open[name] = scope.Secrets
			if scope.Data {
				r.data[name] = true
			} else {
				delete(r.data, name)
			}
		}
	}
	maps.DeleteFunc(r.texts, func(name, _ string) bool { return strings.HasPrefix(name, SecretPrefix) })
	return r
}

// Data that is put into a text must not be calculated with it, so what would begin and end an expression is something else meanwhile: bytes that
// are in no text, because they are not UTF-8.
var (
	hide = strings.NewReplacer("$", "\xfd", "(", "\xfe", ")", "\xff")
	show = strings.NewReplacer("\xfd", "$", "\xfe", "(", "\xff", ")")
)

func (r *resolver) value(name string) (string, error) {
	r.chain = r.chain[:0]
	text, err := r.replace(name)
	if err != nil {
		return "", err
	}
	value, err := calculate(text)
	switch {
	case err != nil && len(r.data) > 0:
		return "", fmt.Errorf("parameter %s: %s", name, show.Replace(err.Error()))
	case err != nil:
		return "", fmt.Errorf("parameter %s: %w", name, err)
	case len(r.data) > 0:
		value = show.Replace(value)
	}
	return value, nil
}

// replace returns a parameter's text with all ${} replaced.
func (r *resolver) replace(name string) (string, error) {
	if text, done := r.replaced[name]; done {
		return text, nil
	}
	if secret, is := strings.CutPrefix(name, SecretPrefix); is {
		return r.secret(secret)
	}
	text, defined := r.texts[name]
	if !defined && r.empty {
		return "[]", nil
	}
	if !defined {
		return "", &UndefinedError{Name: name, Chain: append(slices.Clone(r.chain), name)}
	}
	if first := slices.Index(r.chain, name); first >= 0 {
		return "", &CycleError{Chain: append(slices.Clone(r.chain[first:]), name)}
	}
	if len(r.chain) == maxChain {
		return "", fmt.Errorf("parameter %s leads through more than %d others", r.chain[0], maxChain)
	}
	if r.data[name] {
		text = hide.Replace(text)
	} else {
		r.chain = append(r.chain, name)
		var err error
		if text, err = r.expand(name, text); err != nil {
			return "", err
		}
		r.chain = r.chain[:len(r.chain)-1]
		if !r.open[name] && r.mark.In(text) {
			return "", &ClosedError{name, r.scopes.From(name)}
		}
	}
	if r.kept += len(text); r.kept > MaxTotal {
		return "", fmt.Errorf("the parameters have more than %d bytes together", MaxTotal)
	}
	r.replaced[name] = text
	return text, nil
}

// expand replaces each ${} of a text.
func (r *resolver) expand(name, text string) (string, error) {
	var out strings.Builder
	for {
		before, reference, after := cutReference(text)
		out.WriteString(before)
		value := ""
		if reference != "" {
			var err error
			if value, err = r.replace(reference); err != nil {
				return "", err
			}
		}
		if out.Len()+len(value) > MaxValue {
			return "", fmt.Errorf("parameter %s has more than %d bytes", name, MaxValue)
		}
		out.WriteString(value)
		if reference == "" {
			return out.String(), nil
		}
		text = after
	}
}

// cutReference cuts a text around its first ${name}; without one, all of it stands before.
func cutReference(text string) (before, name, after string) {
	for from := 0; ; {
		i := strings.Index(text[from:], "${")
		if i < 0 {
			return text, "", ""
		}
		start := from + i
		end := start + 2
		for end < len(text) && isNameByte(text[end]) {
			end++
		}
		if end > start+2 && end < len(text) && text[end] == '}' {
			return text[:start], text[start+2 : end], text[end+1:]
		}
		from = start + 2
	}
}

func isNameByte(c byte) bool {
	return c == '_' || c == '.' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

package alert

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// Defaults.
const (
	DefaultQueue = "pelton_alerts"
	defaultEvery = Duration(15 * time.Second)
	// MaxEvery bounds the time between two evaluations, so that a dead evaluator is followed within a minute.
	MaxEvery = Duration(30 * time.Second)
)

// File is what a file of alerts says.
type File struct {
	Path     string
	Name     string   // what notices call this installation
	Every    Duration // between two evaluations
	Queue    string   // where notices go
	Rules    []Rule
	Channels []Channel
	BuiltIn  bool // the rules are those that are built in
}

// BuiltIn is what holds where no file is given: rules of every type, and no channel.
func BuiltIn() *File {
	return &File{Every: defaultEvery, Queue: DefaultQueue, Rules: builtIn(), BuiltIn: true}
}

// published is what the database holds of a file: everything but how channels are reached, which may be a secret.
type published struct {
	Name     string            `json:"name,omitempty"`
	Every    Duration          `json:"every"`
	Queue    string            `json:"queue"`
	Rules    []Rule            `json:"rules"`
	Channels map[string]string `json:"channels"` // types by name
}

func (f *File) publish() ([]byte, error) {
	p := published{Name: f.Name, Every: f.Every, Queue: f.Queue, Rules: f.Rules, Channels: map[string]string{}}
	for _, c := range f.Channels {
		p.Channels[c.Name] = c.Type
	}
	return json.Marshal(p)
}

// readPublished reads what the database holds; nothing: what is built in.
func readPublished(text []byte) (p published, err error) {
	if len(text) == 0 {
		text, err = BuiltIn().publish()
		if err != nil {
			return p, err
		}
	}
	err = json.Unmarshal(text, &p)
	p.Every, p.Queue = cmp.Or(p.Every, defaultEvery), cmp.Or(p.Queue, DefaultQueue)
	return p, err
}

func (p *published) channelNames() []string { return slices.Sorted(maps.Keys(p.Channels)) }

func (p *published) rule(name string) *Rule {
	if i := slices.IndexFunc(p.Rules, func(r Rule) bool { return r.Name == name }); i >= 0 {
		return &p.Rules[i]
	}
	return nil
}

package alert

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

const (
	maxRules    = 100
	maxChannels = 50
	maxWindow   = Duration(24 * time.Hour)
	maxTime     = Duration(30 * 24 * time.Hour)
)

var name = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// Load reads a file of alerts. What is wrong with it is a [*FileError].
func Load(path string) (*File, error) {
	data, err := os.ReadFile(path) //nolint:gosec // whoever starts the program says which
	if err != nil {
		return nil, fmt.Errorf("alerts: %w", err)
	}
	return Parse(path, data)
}

// Parse reads what a file of alerts holds. What is wrong with it, all of it, is a [*FileError].
func Parse(path string, data []byte) (*File, error) {
	p := &parser{document: document{path: path}, file: &File{Path: path, Every: defaultEvery, Queue: DefaultQueue}}
	root := p.load(data)
	if err := p.err(); err != nil {
		return nil, err
	}
	p.parse(root)
	if err := p.err(); err != nil {
		return nil, err
	}
	return p.file, nil
}

type parser struct {
	document

	file          *File
	remind, group Duration
}

func (p *parser) parse(root *yaml.Node) {
	p.remind, p.group = defaultRemind, defaultGroup
	var channels, rules *field
	p.set(root, 0, "", setters{
		"name":     func(f field) { p.file.Name, _ = p.text(f, "") },
		"every":    func(f field) { p.within(f, "", &p.file.Every, Duration(time.Second), MaxEvery) },
		"queue":    func(f field) { p.queue(f) },
		"remind":   func(f field) { p.within(f, "", &p.remind, 0, maxTime) },
		"group":    func(f field) { p.within(f, "", &p.group, 0, maxWindow) },
		"channels": func(f field) { channels = &f },
		"rules":    func(f field) { rules = &f },
	})
	if channels != nil {
		for _, f := range p.fields(channels.value, channels.line, "channels: ") {
			p.channel(f)
		}
	}
	if len(p.file.Channels) > maxChannels {
		p.fault(channels.line, "%d channels are too many: want at most %d", len(p.file.Channels), maxChannels)
	}
	if rules == nil {
		p.file.Rules = builtIn()
		for i := range p.file.Rules {
			r := &p.file.Rules[i]
			r.Remind, r.Group, r.Channels = p.remind, p.group, p.file.channelNames()
		}
		return
	}
	for _, f := range p.fields(rules.value, rules.line, "rules: ") {
		p.rule(f)
	}
	switch n := len(p.file.Rules); {
	case n > maxRules:
		p.fault(rules.line, "%d rules are too many: want at most %d", n, maxRules)
	case n == 0 && len(p.faults) == 0:
		p.fault(rules.line, "rules holds none; leave it out for those that are built in")
	}
}

func (f *File) channelNames() []string {
	var names []string
	for _, c := range f.Channels {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	return names
}

func (p *parser) queue(f field) {
	if text, ok := p.text(f, ""); ok {
		if !name.MatchString(text) {
			p.fault(f.line, "queue: %q is no name of a queue", text)
		}
		p.file.Queue = text
	}
}

// within reads a time that must lie between two others.
func (p *parser) within(f field, where string, to *Duration, least, most Duration) {
	text, ok := p.text(f, where)
	if !ok {
		return
	}
	d, err := ParseDuration(text)
	switch {
	case err != nil:
		p.fault(f.line, "%s%s: %v", where, f.name, err)
	case d < least || d > most:
		p.fault(f.line, "%s%s: %s is out of range: want %s to %s", where, f.name, text, least, most)
	default:
		*to = d
	}
}

func (p *parser) number(f field, where string, to *int, least, most int) {
	text, ok := p.text(f, where)
	if !ok {
		return
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		p.fault(f.line, "%s%s: want a whole number from %d to %d, not %q", where, f.name, least, most, text)
		return
	}
	*to = n
}

// share reads 20% or 0.2.
func (p *parser) share(f field, where string, to *float64) {
	text, ok := p.text(f, where)
	if !ok {
		return
	}
	number, percent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v < 1) {
		p.fault(f.line, "%s%s: want a share from 0%% to less than 100%%, as 20%% or 0.2, not %q", where, f.name, text)
		return
	}
	*to = v
}

func (p *parser) names(f field, where string, to *[]string) {
	for _, one := range p.texts(f, where) {
		*to = append(*to, one.value.Value)
	}
}

func (p *parser) oneOf(f field, where string, to *string, known []string) {
	text, ok := p.text(f, where)
	if !ok {
		return
	}
	if !slices.Contains(known, text) {
		p.unknown(f.value.Line, where+f.name+":", text, known)
		return
	}
	*to = text
}

// find is a field of a mapping; nil if it is not there.
func find(fields []field, name string) *field {
	if i := slices.IndexFunc(fields, func(f field) bool { return f.name == name }); i >= 0 {
		return &fields[i]
	}
	return nil
}

// typed reads the type that a rule or a channel has.
func (p *parser) typed(f field, where string, known []string) (typ string) {
	if isNull(f.value) || f.value.Kind != yaml.MappingNode {
		p.fault(f.line, "%swant keys with values, type among them", where)
		return ""
	}
	quiet := document{path: p.path} // what is wrong with the keys is said once, later
	at := find(quiet.fields(f.value, f.line, where), "type")
	if at == nil {
		p.fault(f.line, "%shas no type; want one of %s", where, strings.Join(known, ", "))
		return ""
	}
	p.oneOf(*at, where, &typ, known)
	return typ
}

func (p *parser) rule(f field) {
	where := fmt.Sprintf("rule %s: ", f.name)
	if !name.MatchString(f.name) {
		p.fault(f.line, "rule %q: a name has up to 100 letters, digits, dots, dashes and underscores, a letter or digit first", f.name)
	}
	typ := p.typed(f, where, Types())
	if typ == "" {
		return
	}
	r := newRule(f.name, typ)
	r.Remind, r.Group = p.remind, p.group
	all := p.ruleSetters(&r, where)
	mine := setters{}
	for _, key := range slices.Concat(everyRule, traits[typ].fields) {
		mine[key] = all[key]
	}
	until := false
	if set := mine["until"]; set != nil {
		mine["until"] = func(f field) { until = true; set(f) }
	}
	p.set(f.value, f.line, where, mine)
	if r.Channels == nil {
		r.Channels = p.file.channelNames()
	}
	if until && (r.Until > r.Over || r.UntilAge > r.OverAge) {
		p.fault(f.line, "%suntil is beyond over: it says down to where it has to fall to count as recovered", where)
	}
	if r.MoreThan > 0 && len(r.Queues)+len(r.Kinds) > 0 {
		p.fault(f.line, "%smore_than counts all dead letters: it goes without queues and kinds", where)
	}
	p.file.Rules = append(p.file.Rules, r)
}

func (p *parser) ruleSetters(r *Rule, where string) setters {
	names := func(to *[]string) func(field) { return func(f field) { p.names(f, where, to) } }
	within := func(to *Duration, least, most Duration) func(field) {
		return func(f field) { p.within(f, where, to, least, most) }
	}
	either := func(share *float64, age *Duration) func(field) {
		return func(f field) {
			if r.Type == OldestAge {
				p.within(f, where, age, Duration(time.Second), maxTime)
				return
			}
			p.share(f, where, share)
		}
	}
	return setters{
		"type":     func(field) {}, // read before
		"severity": func(f field) { p.oneOf(f, where, &r.Severity, severities()) },
		"queues":   names(&r.Queues), "kinds": names(&r.Kinds), "projects": names(&r.Projects), "flows": names(&r.Flows),
		"schedules": names(&r.Schedules),
		"by":        func(f field) { p.oneOf(f, where, &r.By, []string{"queue", "kind"}) },
		"window":    within(&r.Window, Duration(10*time.Second), maxWindow),
		"min_runs":  func(f field) { p.number(f, where, &r.MinRuns, 1, 10_000) },
		"over":      either(&r.Over, &r.OverAge), "until": either(&r.Until, &r.UntilAge),
		"more_than": func(f field) { p.number(f, where, &r.MoreThan, 1, 1_000_000) },
		"late":      within(&r.Late, Duration(time.Second), maxWindow),
		"days":      func(f field) { p.number(f, where, &r.Days, 1, 365) },
		"for":       within(&r.For, 0, maxWindow), "recover_after": within(&r.RecoverAfter, 0, maxWindow),
		"remind": within(&r.Remind, 0, maxTime), "group": within(&r.Group, 0, maxWindow),
		"channels": func(f field) {
			r.Channels = []string{}
			for _, one := range p.texts(f, where) {
				if known := p.file.channelNames(); !slices.Contains(known, one.value.Value) {
					p.unknown(one.line, where+"unknown channel", one.value.Value, known)
				}
				r.Channels = append(r.Channels, one.value.Value)
			}
		},
	}
}

// channelFields are the keys of channels by type.
var channelFields = map[string][]string{
	Mail:    {"type", "to", "from", "smtp", "smtp_env", "smtp_file"},
	Webhook: {"type", "url", "url_env", "url_file", "secret_env", "secret_file"},
	Slack:   {"type", "url_env", "url_file"},
}

func (p *parser) channel(f field) {
	where := fmt.Sprintf("channel %s: ", f.name)
	if !name.MatchString(f.name) {
		p.fault(f.line, "channel %q: a name has up to 100 letters, digits, dots, dashes and underscores, a letter or digit first", f.name)
	}
	typ := p.typed(f, where, slices.Sorted(maps.Keys(channelFields)))
	if typ == "" {
		p.file.Channels = append(p.file.Channels, Channel{Name: f.name}) // so that rules may name it
		return
	}
	c := Channel{Name: f.name, Type: typ}
	text := func(to *string) func(field) { return func(f field) { *to, _ = p.text(f, where) } }
	all := setters{
		"type": func(field) {}, "to": func(f field) { p.names(f, where, &c.To) }, "from": text(&c.From),
		"smtp": text(&c.SMTP.Value), "smtp_env": text(&c.SMTP.Env), "smtp_file": text(&c.SMTP.File),
		"url": text(&c.URL.Value), "url_env": text(&c.URL.Env), "url_file": text(&c.URL.File),
		"secret_env": text(&c.Secret.Env), "secret_file": text(&c.Secret.File),
	}
	mine := setters{}
	for _, key := range channelFields[typ] {
		mine[key] = all[key]
	}
	for _, key := range []string{"url", "secret"} { // what people try first
		if _, known := mine[key]; !known && channelTakes(typ, key) {
			mine[key] = func(f field) {
				p.fault(f.line, "%s%s is a secret and does not belong here: give %s_env or %s_file", where, key, key, key)
			}
		}
	}
	before := len(p.faults)
	p.set(f.value, f.line, where, mine)
	if len(p.faults) == before {
		for _, reason := range c.check() {
			p.fault(f.line, "%s%s", where, reason)
		}
	}
	p.file.Channels = append(p.file.Channels, c)
}

// channelTakes tells whether channels of a type take a value from elsewhere.
func channelTakes(typ, key string) bool { return slices.Contains(channelFields[typ], key+"_env") }

// title is what notices call this installation.
func (p *published) title(schema, database string) string { return cmp.Or(p.Name, database+"/"+schema) }

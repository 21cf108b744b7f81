package draft

import (
	"maps"
	"slices"
	"strings"

	"github.com/peltonq/pelton/jobs/flow/internal/graph"
	"github.com/peltonq/pelton/jobs/flow/internal/param"
)

// Secrets are for programs alone, which get them as they start: whatever else a text is for is stored, or told.

// toldKeys are those whose values people see.
var toldKeys = map[string]string{
	keySuccess: "it is told to the mail server", keyFailure: "it is told to the mail server", keyNotify: "it is told to the mail server",
	"working.dir": "it is told in errors",
}

// secretKeys checks a config alone.
func secretKeys(config graph.Config, fault faultFunc) {
	for key, value := range config {
		if strings.HasPrefix(key, param.SecretPrefix) {
			fault(key, "%s: names that begin with %s are those of secrets (pelton secret set); call the parameter something else", key, param.SecretPrefix)
		}
		for _, name := range param.Secrets(value) {
			if !param.IsSecretName(name) {
				fault(key, "%s: ${secret.%s}: a secret's name has up to 64 letters, digits and _, the first no digit", key, name)
			} else if why := toldKeys[key]; why != "" {
				fault(key, "%s: a secret cannot be used here: %s", key, why)
			}
		}
	}
}

// usesSecrets tells whether there are any, so that a project without them is checked no further.
func usesSecrets(p *Project) bool {
	in := func(config graph.Config) bool {
		for _, value := range config {
			if strings.Contains(value, "${"+param.SecretPrefix) {
				return true
			}
		}
		return false
	}
	seen := map[*Set]bool{}
	var inSet func(s *Set) bool
	inSet = func(s *Set) bool {
		if s == nil || seen[s] {
			return false
		}
		seen[s] = true
		return slices.ContainsFunc(s.Nodes, func(n *Node) bool {
			return in(n.Config) || in(n.Shared) || inSet(n.Nodes) || strings.Contains(string(n.Args), "${"+param.SecretPrefix) ||
				n.ForEach != nil && slices.ContainsFunc(n.ForEach.Items, func(item string) bool { return strings.Contains(item, "${"+param.SecretPrefix) })
		})
	}
	return inSet(p.Jobs) || slices.ContainsFunc(p.Flows, func(f *Flow) bool { return in(f.Config) || inSet(f.Nodes) })
}

// Texts are a node's parameters as they are written: its own beat those around it, the nearest first in inherited.
func Texts(n *Node, inherited []graph.Config) map[string]string {
	all := map[string]string{}
	maps.Copy(all, n.Shared)
	for _, config := range slices.Backward(inherited) {
		maps.Copy(all, config)
	}
	maps.Copy(all, n.Config)
	return all
}

// secrets checks where a node uses secrets.
func (c *checker) secrets(n *Node, inherited []graph.Config, fault faultFunc) {
	if !c.secretive {
		return
	}
	all := Texts(n, inherited)
	if each := n.ForEach; each != nil {
		for i, item := range each.Items {
			if secret := param.LeadsToSecret(all, item); secret != "" {
				fault("for_each", "for_each: item %d uses secret.%s: items are stored, and cannot hold secrets", i, secret)
				break
			}
		}
	}
	if value, own := n.Config["working.dir"]; own && len(param.Secrets(value)) == 0 {
		if secret := param.LeadsToSecret(all, value); secret != "" {
			fault("working.dir", "working.dir: secret.%s cannot be used here: %s", secret, toldKeys["working.dir"])
		}
	}
	if n.Args != nil {
		if secrets := param.Secrets(string(n.Args)); len(secrets) > 0 {
			fault("type", "the args of kind %q use secret.%s: %s", n.Type, secrets[0], argsAreStored)
		}
		return
	}
	if BuiltIn(n.Type) || !slices.Contains(c.rules.Kinds, n.Type) {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(n.Config)) {
		if secret := param.LeadsToSecret(all, n.Config[key]); secret != "" {
			fault(key, "%s uses secret.%s in a node of kind %q: %s", key, secret, n.Type, argsAreStored)
		}
	}
}

const argsAreStored = "a job's args are stored; only nodes that run programs can use secrets"

// KindSecrets tells by key what is wrong with the config of a node whose args are made of it, in a graph.
func KindSecrets(f *graph.Flow, n int) map[string]string {
	faults := map[string]string{}
	node := &f.Nodes[n]
	all := maps.Clone(map[string]string(f.Config))
	if all == nil {
		all = map[string]string{}
	}
	for _, container := range param.Containers(f, node) {
		maps.Copy(all, f.Nodes[container].Config)
	}
	maps.Copy(all, node.Config)
	for key, value := range node.Config {
		if secret := param.LeadsToSecret(all, value); secret != "" {
			faults[key] = key + " uses secret." + secret + ": " + argsAreStored
		}
	}
	return faults
}

// secretInCondition tells which secret a condition would compare; "" if none.
func secretInCondition(n *Node, inherited []graph.Config, name string) string {
	all := Texts(n, inherited)
	return param.LeadsToSecret(all, all[name])
}

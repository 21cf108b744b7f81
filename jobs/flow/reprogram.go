package flow

import (
	"slices"
	"strings"
)

// programKeys are the parameters that say which program a node runs, and with what around it; a key that ends with a dot stands for all that begin so.
var programKeys = []string{"command", "command.", "env.", "working.dir", "java.class", "classpath", "jvm.args", "main.args", "type"}

// argKeys are those of a single node that is a job of kind "command": args that the node itself does not give.
var argKeys = []string{"commands", "dir", "env", "shell"}

// Reprograms lists the parameters of a run by which its nodes would run other programs than the ones that were pushed, as NODE:NAME or NAME, in order:
// their commands, environment, directory, Java class and its arguments. Whoever may start runs but not push projects should not set these: a
// program reads the secrets of its project.
func (o *Options) Reprograms() (names []string) {
	for name := range o.Params {
		if reprograms(name) {
			names = append(names, name)
		}
	}
	for node, params := range o.NodeParams {
		for name := range params {
			if reprograms(name) || slices.Contains(argKeys, name) {
				names = append(names, node+":"+name)
			}
		}
	}
	slices.Sort(names)
	return names
}

func reprograms(name string) bool {
	return slices.ContainsFunc(programKeys, func(key string) bool {
		return name == key || strings.HasSuffix(key, ".") && strings.HasPrefix(name, key)
	})
}

package nodecmd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/riverqueue/river"

	"github.com/peltonq/pelton/jobs/command"
	"github.com/peltonq/pelton/jobs/flow/internal/line"
	"github.com/peltonq/pelton/jobs/flow/internal/scrub"
	"github.com/peltonq/pelton/jobs/flow/secret"
	"github.com/peltonq/pelton/jobs/internal/mark"
	"github.com/peltonq/pelton/jobs/joblog"
)

// Secrets has the values of secrets for jobs of nodes.
type Secrets interface {
	Values(ctx context.Context, node secret.Node, names []string) (map[string][]byte, error)
}

// secretVariable begins the names of variables by which scripts of a shell get secrets.
const secretVariable = "PELTON_SECRET_"

// launch is what is run, with the secrets in it: in the environment and, where no shell can take them from there, on the command line.
type launch struct {
	argvs [][]string
	env   []string
	hide  *scrub.Set // what must not be told
}

// launch fills in the secrets. A script behind the -c of a shell gets variables instead, which the shell puts in.
func (w *Worker) launch(ctx context.Context, job *river.Job[Args], argvs [][]string, env []string) (*launch, error) {
	m := job.Args.Secrets
	l := &launch{argvs: argvs, env: env}
	names := m.Names(slices.Concat(slices.Concat(argvs...), env)...)
	if len(names) == 0 {
		return l, nil
	}
	node := mark.Of(job.Metadata)
	switch {
	case node == nil:
		return nil, fmt.Errorf("secret %s: the job is none of a flow's node, and others get no secrets", names[0])
	case w.secrets == nil:
		return nil, fmt.Errorf("secret %s: %w", names[0], secret.ErrNoKey)
	}
	values, err := w.secrets.Values(ctx, secret.Node{Run: node.Run, No: node.Node, Job: job.ID}, names)
	if err != nil {
		return nil, err
	}
	l.hide = scrub.New(values)
	value := func(name, _ string) string { return string(values[name]) }
	variables := map[string]string{}
	for i, argv := range argvs {
		if m.In(argv[0]) {
			return nil, errors.New("the name of a program holds a secret, which it must not: it is told in errors")
		}
		filled := slices.Clone(argv)
		for at, word := range argv {
			put := value
			if line.IsScript(argv, at) {
				put = func(name, before string) string {
					variables[secretVariable+name] = string(values[name])
					return reference(secretVariable+name, before)
				}
			}
			filled[at] = m.Fill(word, put)
		}
		l.argvs = slices.Clone(l.argvs)
		l.argvs[i] = filled
	}
	l.env = make([]string, 0, len(env)+len(variables))
	for _, entry := range env {
		l.env = append(l.env, m.Fill(entry, value))
	}
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		l.env = append(l.env, name+"="+variables[name])
	}
	return l, nil
}

// reference is how a script gets a variable behind the text before: where it stands in single quotes, these are left for it.
func reference(name, before string) string {
	if inSingleQuotes(before) {
		return `'"${` + name + `}"'`
	}
	return "${" + name + "}"
}

// inSingleQuotes tells whether a script's text ends within single quotes. What stands in here-documents and in "$(...)" is not told apart.
func inSingleQuotes(text string) bool {
	quote := byte(0)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quote == '\'':
			if c == '\'' {
				quote = 0
			}
		case c == '\\':
			i++
		case quote == '"':
			if c == '"' {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '#' && (i == 0 || strings.IndexByte(" \t\n;", text[i-1]) >= 0):
			end := strings.IndexByte(text[i:], '\n')
			if end < 0 {
				return false
			}
			i += end
		}
	}
	return quote == '\''
}

// streams are where programs print, without the secrets.
type streams struct {
	stdout, stderr *scrub.Writer
	last           *command.LastLines // of stderr
}

func (l *launch) streams(log *joblog.Run) *streams {
	s := &streams{last: &command.LastLines{}}
	s.stdout = l.hide.Writer(log.Stream(joblog.Stdout))
	s.stderr = l.hide.Writer(s.last.Tee(log.Stream(joblog.Stderr)))
	return s
}

// next has the last lines be those of the next program.
func (s *streams) next() { *s.last = command.LastLines{} }

// close passes on what was held back, and puts the last lines without secrets into the error of a program.
func (s *streams) close(err error) error {
	_, _ = s.stdout.Close(), s.stderr.Close() // a log that takes nothing more fails no node
	if exit, is := errors.AsType[*command.ExitError](err); is {
		exit.Stderr = s.last.String()
	}
	return err
}

// refuseSecrets fails if outputs hold a secret: they are stored, and handed to other nodes, for whom *** would be wrong.
func (l *launch) refuseSecrets(outputs map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(outputs)) {
		if l.hide.In(name) {
			return fmt.Errorf("%w: the name of an output holds a secret", ErrBadOutputs)
		}
		if l.hide.In(outputs[name]) {
			return fmt.Errorf("%w: output %s holds a secret; outputs are stored: use ${secret.NAME} where it is needed", ErrBadOutputs, name)
		}
	}
	return nil
}

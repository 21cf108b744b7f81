package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/peltonq/pelton/admin/document"
	"github.com/peltonq/pelton/internal/quantity"
	"github.com/peltonq/pelton/jobs/flow/secret"
)

const secretKeyUsage = "`file` with the keys of secrets (env PELTON_SECRET_KEY_FILE; that of pelton dev if its database is used)"

func (a *app) secret() *cobra.Command {
	cmd := parent(&cobra.Command{
		Use: "secret", Short: "Set and delete what ${secret.NAME} stands for in flows", GroupID: groupOperate,
		Long: `Set and delete what ${secret.NAME} stands for in the configs of flows.

A secret belongs to a project, or to all that have none of that name. Its value is encrypted with a key from a file that servers and workers
have too, and is never shown again. It is asked for on the terminal, or is all of standard input.`,
	}, a.secretSet(), a.secretList(), a.secretDelete(), a.secretRekey(), a.secretKey())
	a.secretKeyFlag(cmd.PersistentFlags())
	return cmd
}

func (a *app) secretKeyFlag(f *pflag.FlagSet) {
	f.StringVar(&a.secretKeyFile, "secret-key-file", "", secretKeyUsage)
}

// secretKeys are the keys of secrets: those of the file that was named, else those of a running pelton dev whose database is used.
func (a *app) secretKeys() secret.KeyFile {
	file := cmp.Or(a.secretKeyFile, a.env("PELTON_SECRET_KEY_FILE"))
	if file == "" && a.fromDev != "" {
		file = devKeyPath(filepath.Dir(a.fromDev))
	}
	return secret.KeyFile(file)
}

// tellOfKeys says on the log of who serves what is wrong with the key file. Only nodes that need secrets suffer from it.
func (a *app) tellOfKeys(ctx context.Context) {
	file, log := a.secretKeys(), a.logger(levelServe)
	if file == "" {
		return
	}
	if _, err := file.Keys(); err != nil {
		log.WarnContext(ctx, "nodes of flows that need secrets will fail", "error", err)
	}
	if info, err := os.Stat(string(file)); err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		log.WarnContext(ctx, "others on this machine may read the keys of secrets; chmod 600 the file", "file", string(file))
	}
}

// devKeyPath is where pelton dev keeps the keys of secrets.
func devKeyPath(dir string) string { return filepath.Join(dir, "secret.key") }

// useDevKeys has pelton dev use keys of its own unless others were named.
func (a *app) useDevKeys(dir string) error {
	if a.secretKeys() != "" {
		return nil
	}
	a.secretKeyFile = devKeyPath(dir)
	if _, err := os.Stat(a.secretKeyFile); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return makeKeyFile(a.secretKeyFile)
}

// withSecrets runs do with a client of secrets, in the name of the OS user.
func (a *app) withSecrets(ctx context.Context, do func(ctx context.Context, secrets *secret.Client) error) error {
	return a.withClient(ctx, func(ctx context.Context, db database) error {
		return secretFault(do(ctx, secret.NewClient(db.pool, db.client, a.secretKeys())))
	})
}

// secretFault sorts what a client refuses into what exit codes tell apart, and says what to do without a key.
func secretFault(err error) error {
	var wrong *secret.InputError
	switch {
	case errors.As(err, &wrong):
		return usage(err)
	case errors.Is(err, secret.ErrNoKey):
		return usagef("%w; name the file by --secret-key-file or PELTON_SECRET_KEY_FILE, or make one by `pelton secret key FILE`", err)
	}
	return err
}

func projectFlag(cmd *cobra.Command, project *string) {
	cmd.Flags().StringVar(project, "project", *project, "the `project` that the secret is for; * is all that have none of that name")
}

func (a *app) secretSet() *cobra.Command {
	project := secret.Everywhere
	cmd := &cobra.Command{
		Use: "set NAME", Short: "Give a secret a value", Args: arguments(cobra.ExactArgs(1)),
		Example: "  pelton secret set DB_PASSWORD --project etl\n  pelton secret set DEPLOY_KEY < key.pem",
		RunE: brief(func(ctx context.Context, args []string) error {
			return a.withSecrets(ctx, func(ctx context.Context, secrets *secret.Client) error {
				if _, err := a.secretKeys().Keys(); err != nil { // before anybody types
					return err
				}
				value, err := a.secretValue(ctx)
				if err != nil {
					return err
				}
				s, err := secrets.Set(ctx, project, args[0], value)
				if err != nil {
					return err
				}
				return a.document(document.NewSecret(s), func(w io.Writer) { fmt.Fprintf(w, "secret %s of %s set, version %d\n", s.Name, whose(s), s.Version) })
			})
		}),
	}
	projectFlag(cmd, &project)
	return cmd
}

// secretValue asks for a value, twice, if standard input is a terminal; else it is all of that, without the end of its last line. It is in no flag,
// since other users of the machine can see those.
func (a *app) secretValue(ctx context.Context) ([]byte, error) {
	if file, ok := a.stdin.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		text, err := a.askTwice(ctx, file, "Value: ", "values")
		return []byte(text), err
	}
	value, err := io.ReadAll(io.LimitReader(newInterruptibleReader(ctx, a.stdin), secret.MaxValue+3))
	if err != nil {
		return nil, fmt.Errorf("read a value from standard input: %w", err)
	}
	if n := len(value); n > 0 && value[n-1] == '\n' {
		value = value[:n-1]
		if n > 1 && value[n-2] == '\r' {
			value = value[:n-2]
		}
	}
	if len(value) == 0 {
		return nil, usagef("no value: type it on a terminal, or give it on standard input")
	}
	return value, nil
}

func (a *app) secretList() *cobra.Command {
	project := ""
	cmd := &cobra.Command{
		Use: "list", Short: "List secrets, without their values", Args: arguments(cobra.NoArgs),
		RunE: brief(func(ctx context.Context, _ []string) error {
			return a.withSecrets(ctx, func(ctx context.Context, secrets *secret.Client) error {
				var p secret.ListParams
				if project != "" {
					p.Projects = []string{project}
				}
				found, err := secrets.List(ctx, p)
				if err != nil {
					return err
				}
				for i := range found {
					found[i] = document.NewSecret(found[i])
				}
				return list(a, "PROJECT NAME VERSION SET BY KEY", found, func(s secret.Secret) []any {
					return []any{s.Project, s.Name, s.Version, moment(s.SetAt), s.SetBy, s.Key}
				})
			})
		}),
	}
	cmd.Flags().StringVar(&project, "project", "", "only those of this `project`; * is those for all")
	return cmd
}

func (a *app) secretDelete() *cobra.Command {
	project := secret.Everywhere
	cmd := &cobra.Command{
		Use: "delete NAME", Short: "Delete a secret", Args: arguments(cobra.ExactArgs(1)),
		RunE: brief(func(ctx context.Context, args []string) error {
			return a.withSecrets(ctx, func(ctx context.Context, secrets *secret.Client) error {
				s := secret.Secret{Project: project, Name: args[0]}
				if err := secrets.Delete(ctx, s.Project, s.Name); err != nil {
					return err
				}
				return a.document(document.SecretDeleted{Project: s.Project, Name: s.Name, Deleted: true}, func(w io.Writer) { fmt.Fprintf(w, "secret %s of %s is deleted\n", s.Name, whose(s)) })
			})
		}),
	}
	projectFlag(cmd, &project)
	return cmd
}

func (a *app) secretRekey() *cobra.Command {
	return &cobra.Command{
		Use: "rekey", Short: "Encrypt all secrets with the newest key", Args: arguments(cobra.NoArgs),
		Long: `Encrypt all secrets with the newest key of the key file. Add one before by secret key --add, and give the file to all servers and
workers; when rekey has left none, older keys may be taken out of it.`,
		RunE: brief(func(ctx context.Context, _ []string) error {
			return a.withSecrets(ctx, func(ctx context.Context, secrets *secret.Client) error {
				done, err := secrets.Rekey(ctx)
				if err != nil {
					return err
				}
				err = a.document(done, func(w io.Writer) {
					fmt.Fprintf(w, "%s encrypted with key %s\n", quantity.Of(done.Changed, "secret"), done.Key)
					for _, left := range done.Left {
						fmt.Fprintln(w, "left as it is: "+left)
					}
				})
				if err == nil && len(done.Left) > 0 {
					err = fmt.Errorf("%s could not be decrypted", quantity.Of(len(done.Left), "secret"))
				}
				return err
			})
		}),
	}
}

func (a *app) secretKey() *cobra.Command {
	add, ifMissing := false, false
	cmd := &cobra.Command{
		Use: "key FILE", Short: "Make a key file that only its owner reads, or add a key to one", Args: arguments(cobra.ExactArgs(1)),
		Example: "  pelton secret key /etc/pelton/secret.key\n  pelton secret key --add /etc/pelton/secret.key",
		RunE: brief(func(_ context.Context, args []string) error {
			file := args[0]
			write := makeKeyFile
			if add {
				write = addKey
			}
			_, err := os.Stat(file)
			if !ifMissing || errors.Is(err, fs.ErrNotExist) {
				err = write(file)
			}
			if err != nil {
				return err
			}
			keys, err := secret.KeyFile(file).Keys()
			if err != nil {
				return err
			}
			return a.document(keyMadeJSON{file, keys.Newest()}, func(w io.Writer) {
				fmt.Fprintf(w, "key %s is in %s; keep a copy elsewhere: without it secrets are lost\n", keys.Newest(), file)
			})
		}),
	}
	cmd.Flags().BoolVar(&add, "add", false, "add a key to a file that exists; it becomes the newest, which encrypts")
	cmd.Flags().BoolVar(&ifMissing, "if-missing", false, "leave a file that exists as it is")
	cmd.MarkFlagsMutuallyExclusive("add", "if-missing")
	return cmd
}

type keyMadeJSON struct {
	File string `json:"file"`
	Key  string `json:"key"` // its id
}

// makeKeyFile makes a file with one key, unless it exists.
func makeKeyFile(file string) error {
	err := writeNewKey(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, "# Keys of Pelton's secrets, the newest last. Keep this file to yourself, and a copy elsewhere.\n")
	if errors.Is(err, fs.ErrExist) {
		return refused(fmt.Errorf("%s exists: --add adds a key to it", file))
	}
	return err
}

// addKey appends a key to a file of keys.
func addKey(file string) error {
	if _, err := secret.KeyFile(file).Keys(); err != nil {
		return usage(err)
	}
	return writeNewKey(file, os.O_WRONLY|os.O_APPEND, "\n")
}

func writeNewKey(file string, flags int, before string) error {
	f, err := os.OpenFile(file, flags, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(before + secret.NewKey() + "\n")
	return errors.Join(err, f.Sync(), f.Close())
}

// whose says in words which projects a secret is for.
func whose(s secret.Secret) string {
	if s.Project == secret.Everywhere {
		return "all projects"
	}
	return "project " + s.Project
}

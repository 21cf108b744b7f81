package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/document"
)

func (a *app) user() *cobra.Command {
	return parent(&cobra.Command{
		Use: "user", Short: "See and change who may use the page and the API", GroupID: groupOperate,
		Long: `See and change who may use the page and the API. Users are disabled, never deleted.

Roles are viewer, operator and admin, each in one project or in all. A password is asked for on the terminal, or is the first line of
standard input.`,
	}, a.userAdd(), a.userList(), a.userPassword(), a.userDisable(true), a.userDisable(false), a.userRole())
}

// withAccess runs do with a store of users, in the name of the OS user.
func (a *app) withAccess(ctx context.Context, do func(ctx context.Context, store *access.Store) error) error {
	return a.withForcedAccess(ctx, false, do)
}

// withForcedAccess is withAccess; force: the last admin may go.
func (a *app) withForcedAccess(ctx context.Context, force bool, do func(ctx context.Context, store *access.Store) error) error {
	return a.withClient(ctx, func(ctx context.Context, db database) error {
		store, err := access.NewStore(db.pool, access.Config{Schema: a.schemaName(), LastAdmin: force})
		if err != nil {
			return usage(err)
		}
		return do(ctx, store)
	})
}

func (a *app) userAdd() *cobra.Command {
	role, project, oidc := "", access.Everything, false
	cmd := &cobra.Command{
		Use: "add NAME", Short: "Add a user", Args: arguments(cobra.ExactArgs(1)),
		Example: "  pelton user add alice --role admin\n  pelton user add bob --role operator --project etl --oidc",
		RunE: brief(func(ctx context.Context, args []string) error {
			u := access.NewUser{Name: args[0]}
			if role != "" {
				given, err := access.ParseRole(role)
				if err != nil {
					return usagef("--role: %w", err)
				}
				u.Roles = []access.Grant{{Project: project, Role: given}}
			}
			return a.withAccess(ctx, func(ctx context.Context, store *access.Store) (err error) {
				if !oidc {
					if u.Password, err = a.password(ctx); err != nil {
						return err
					}
				}
				added, err := store.AddUser(ctx, osUser(), u)
				if err != nil {
					return accessFault(err)
				}
				return a.document(document.NewUser(added), func(w io.Writer) { fmt.Fprintf(w, "user %s added%s\n", added.Name, rolesText(added.Roles)) })
			})
		}),
	}
	f := cmd.Flags()
	f.StringVar(&role, "role", "", "`role` to give: viewer, operator or admin (default: none yet)")
	f.StringVar(&project, "project", project, "the `project` that the role is for; * is everything")
	f.BoolVar(&oidc, "oidc", false, "no password: the user logs in by OpenID Connect under this name")
	return cmd
}

func (a *app) userList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List users and their roles", Args: arguments(cobra.NoArgs),
		RunE: brief(func(ctx context.Context, _ []string) error {
			return a.withAccess(ctx, func(ctx context.Context, store *access.Store) error {
				users, err := store.UserList(ctx, access.UserListParams{})
				if err != nil {
					return err
				}
				rows := make([]document.User, len(users))
				for i, u := range users {
					rows[i] = document.NewUser(u)
				}
				return list(a, "NAME LOGIN ROLES CREATED DISABLED", rows, func(u document.User) []any {
					return []any{u.Name, u.Login, strings.TrimPrefix(rolesText(u.Roles), ": "), moment(u.CreatedAt), optionalMoment(u.DisabledAt)}
				})
			})
		}),
	}
}

func (a *app) userPassword() *cobra.Command {
	return &cobra.Command{
		Use: "set-password NAME", Short: "Set a password, and end the user's sessions", Args: arguments(cobra.ExactArgs(1)),
		RunE: brief(func(ctx context.Context, args []string) error {
			return a.withAccess(ctx, func(ctx context.Context, store *access.Store) error {
				password, err := a.password(ctx)
				if err != nil {
					return err
				}
				if err := store.SetPassword(ctx, osUser(), args[0], password); err != nil {
					return accessFault(err)
				}
				return a.document(document.UserChanged{Name: args[0], Done: "password set", Changed: true}, func(w io.Writer) {
					fmt.Fprintf(w, "password of user %s set; sessions have ended, tokens still hold\n", args[0])
				})
			})
		}),
	}
}

func (a *app) userDisable(disable bool) *cobra.Command {
	name, short, done := "enable", "Let a disabled user in again", "enabled"
	if disable {
		name, short, done = "disable", "Keep a user out: end sessions, and let no token hold", "disabled"
	}
	force := false
	cmd := &cobra.Command{
		Use: name + " NAME", Short: short, Args: arguments(cobra.ExactArgs(1)),
		RunE: brief(func(ctx context.Context, args []string) error {
			return a.withForcedAccess(ctx, force, func(ctx context.Context, store *access.Store) error {
				do := store.Enable
				if disable {
					do = store.Disable
				}
				changed, err := do(ctx, osUser(), args[0])
				if err != nil {
					return accessFault(err)
				}
				return a.document(document.UserChanged{Name: args[0], Done: done, Changed: changed}, func(w io.Writer) {
					was := ""
					if !changed {
						was = " already"
					}
					fmt.Fprintf(w, "user %s is %s%s\n", args[0], done, was)
				})
			})
		}),
	}
	if disable {
		forceFlag(cmd, &force)
	}
	return cmd
}

// forceFlag adds the flag that lets the last admin go.
func forceFlag(cmd *cobra.Command, force *bool) {
	cmd.Flags().BoolVar(force, "force", false, "also the last admin of everything")
}

func (a *app) userRole() *cobra.Command {
	project, force := access.Everything, false
	cmd := &cobra.Command{
		Use: "role NAME ROLE", Short: "Give a role (viewer, operator, admin), or take it back (none)", Args: arguments(cobra.ExactArgs(2)),
		Example: "  pelton user role alice operator --project etl\n  pelton user role alice none --project etl",
		RunE: brief(func(ctx context.Context, args []string) error {
			g := access.Grant{Project: project}
			if args[1] != access.NoRole.String() {
				if err := oneOf("role", args[1], append(access.Roles(), access.NoRole.String())); err != nil {
					return err
				}
				var err error
				if g.Role, err = access.ParseRole(args[1]); err != nil {
					return usage(err)
				}
			}
			return a.withForcedAccess(ctx, force, func(ctx context.Context, store *access.Store) error {
				if err := store.SetRole(ctx, osUser(), args[0], g); err != nil {
					return accessFault(err)
				}
				u, err := store.User(ctx, args[0])
				if err != nil {
					return err
				}
				return a.document(document.NewUser(u), func(w io.Writer) { fmt.Fprintf(w, "user %s%s\n", u.Name, rolesText(u.Roles)) })
			})
		}),
	}
	cmd.Flags().StringVar(&project, "project", project, "the `project` that the role is for; * is everything")
	forceFlag(cmd, &force)
	return cmd
}

// rolesText is ": admin, operator@etl", or that there are none.
func rolesText(roles []access.Grant) string {
	if len(roles) == 0 {
		return ": no role"
	}
	var texts []string
	for _, g := range roles {
		text := g.Role.String()
		if g.Project != access.Everything {
			text += "@" + g.Project
		}
		if g.Source == "oidc" {
			text += " (groups)"
		}
		texts = append(texts, text)
	}
	return ": " + strings.Join(texts, ", ")
}

// accessFault sorts what a store refuses into what exit codes tell apart.
func accessFault(err error) error {
	var wrong *access.InputError
	switch {
	case errors.As(err, &wrong):
		return usage(err)
	case errors.Is(err, access.ErrLastAdmin):
		return refused(fmt.Errorf("%w, or say --force", err))
	case errors.Is(err, access.ErrExists):
		return refused(err)
	}
	return err
}

// password asks for a new password, twice, if standard input is a terminal; else it is the first line of that. It is in no flag, since other
// users of the machine can see those.
func (a *app) password(ctx context.Context) (string, error) {
	file, ok := a.stdin.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		line, err := bufio.NewReader(newInterruptibleReader(ctx, a.stdin)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", fmt.Errorf("read a password from standard input: %w", err)
		}
		if line = strings.TrimRight(line, "\r\n"); line == "" {
			return "", usagef("no password: type it on a terminal, or give it as the first line of standard input")
		}
		return line, nil
	}
	return a.askTwice(ctx, file, "Password: ", "passwords")
}

// askTwice asks for a text that is not shown, and once more for the same.
func (a *app) askTwice(ctx context.Context, file *os.File, prompt, what string) (string, error) {
	first, err := a.ask(ctx, file, prompt)
	if err != nil {
		return "", err
	}
	second, err := a.ask(ctx, file, "Again: ")
	if err != nil {
		return "", err
	}
	if first != second {
		return "", usagef("the two %s differ", what)
	}
	return first, nil
}

// ask reads a line from a terminal that does not show it. An interrupt gives the terminal back as it was.
func (a *app) ask(ctx context.Context, file *os.File, prompt string) (string, error) {
	fd := int(file.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", fmt.Errorf("terminal: %w", err)
	}
	fmt.Fprint(a.stderr, prompt)
	defer fmt.Fprintln(a.stderr)
	read := make(chan struct{})
	var line []byte
	go func() {
		defer close(read)
		line, err = term.ReadPassword(fd)
	}()
	select {
	case <-read:
	case <-ctx.Done():
		_ = term.Restore(fd, before) // the process is about to end
		return "", context.Cause(ctx)
	}
	if err != nil {
		return "", fmt.Errorf("read a password: %w", err)
	}
	return string(line), nil
}

package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/document"
	"github.com/peltonq/pelton/internal/span"
)

func (a *app) token() *cobra.Command {
	return parent(&cobra.Command{
		Use: "token", Short: "Make and revoke keys for programs that use the API", GroupID: groupOperate,
		Long: `Make and revoke keys for programs that use the API in the name of a user. A token may do at most what its user may.`,
	}, a.tokenCreate(), a.tokenList(), a.tokenRevoke())
}

func (a *app) tokenCreate() *cobra.Command {
	role, expires := access.Viewer.String(), "90d"
	n := access.NewToken{Project: access.Everything}
	cmd := &cobra.Command{
		Use: "create USER", Short: "Make a token, and print it this once", Args: arguments(cobra.ExactArgs(1)),
		Example: "  pelton token create alice --name ci --role operator --project etl --expires 30d",
		RunE: brief(func(ctx context.Context, args []string) (err error) {
			n.User = args[0]
			if n.Role, err = access.ParseRole(role); err != nil {
				return usagef("--role: %w", err)
			}
			if n.Life, err = parseDays(expires); err != nil {
				return usagef("--expires: %w", err)
			}
			return a.withAccess(ctx, func(ctx context.Context, store *access.Store) error {
				t, secret, err := store.AddToken(ctx, osUser(), n)
				if err != nil {
					return accessFault(err)
				}
				return a.document(document.TokenMade{Token: document.NewToken(t), Secret: secret}, func(w io.Writer) {
					fmt.Fprintln(w, secret)
					fmt.Fprintf(a.stderr, "token %d of user %s, %s, expires %s; it is not shown again\n", t.ID, t.User,
						strings.TrimPrefix(rolesText([]access.Grant{{Project: t.Project, Role: t.Role}}), ": "), moment(t.ExpiresAt))
				})
			})
		}),
	}
	f := cmd.Flags()
	f.StringVar(&n.Name, "name", "", "what the token is for (required)")
	f.StringVar(&role, "role", role, "`role` of the token, if its user has it: viewer, operator or admin")
	f.StringVar(&n.Project, "project", n.Project, "the `project` that the token is for; * is all that its user may")
	f.StringVar(&expires, "expires", expires, "`time` until it no longer holds, as 12h or 30d")
	return cmd
}

// parseDays reads a duration above zero, up to 100,000 days: 90d.
func parseDays(text string) (time.Duration, error) {
	d, err := span.Parse(text)
	if err != nil || d == 0 || d > 100_000*24*time.Hour {
		return 0, fmt.Errorf("%q: want a time, as 12h or 30d", text)
	}
	return d, nil
}

func (a *app) tokenList() *cobra.Command {
	return &cobra.Command{
		Use: "list [USER]", Short: "List tokens, newest first", Args: arguments(cobra.MaximumNArgs(1)),
		RunE: brief(func(ctx context.Context, args []string) error {
			return a.withAccess(ctx, func(ctx context.Context, store *access.Store) error {
				tokens, err := store.TokenList(ctx, access.TokenListParams{User: strings.Join(args, "")})
				if err != nil {
					return accessFault(err)
				}
				rows := make([]access.Token, len(tokens))
				for i, t := range tokens {
					rows[i] = document.NewToken(t)
				}
				return list(a, "ID USER NAME ROLE STATE CREATED EXPIRES USED", rows, func(t access.Token) []any {
					state := "holds"
					switch {
					case t.RevokedAt != nil:
						state = "revoked"
					case t.Expired:
						state = "expired"
					}
					role := strings.TrimPrefix(rolesText([]access.Grant{{Project: t.Project, Role: t.Role}}), ": ")
					return []any{t.ID, t.User, t.Name, role, state, moment(t.CreatedAt), moment(t.ExpiresAt), optionalMoment(t.UsedAt)}
				})
			})
		}),
	}
}

func (a *app) tokenRevoke() *cobra.Command {
	return &cobra.Command{
		Use: "revoke ID", Short: "End a token for good", Args: arguments(cobra.ExactArgs(1)),
		RunE: brief(func(ctx context.Context, args []string) error {
			id, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil || id < 1 {
				return usagef("%q is not a token's id: pelton token list", args[0])
			}
			return a.withAccess(ctx, func(ctx context.Context, store *access.Store) error {
				changed, err := store.RevokeToken(ctx, osUser(), id)
				if err != nil {
					return err
				}
				return a.document(document.TokenRevoked{ID: id, Changed: changed}, func(w io.Writer) {
					was := ""
					if !changed {
						was = " already"
					}
					fmt.Fprintf(w, "token %d is revoked%s\n", id, was)
				})
			})
		}),
	}
}

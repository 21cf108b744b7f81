package periodic

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"
)

// maxNote bounds what a tick's row says.
const maxNote = 1000

// words is an error for people who look at a tick: of Postgres' errors the message and the detail.
func words(err error) string {
	text := err.Error()
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		text = e.Message
		if e.Detail != "" {
			text += " (" + e.Detail + ")"
		}
	}
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "?"), "\x00", "?")
	for len(text) > maxNote {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	return text
}

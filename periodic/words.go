package periodic

import (
	"errors"
	"strings"
	"time"
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

// Over tells, of a schedule that is not paused, whether no more ticks come. A fixed delay has no next one while its run goes on.
func (e *Entry) Over() bool {
	return e.NextAt == nil && e.Waiting == nil && (e.Delay == 0 || e.EndAt != nil && e.EndAt.Before(time.Now()))
}

// When says in words for people when the ticks come.
func (e *Entry) When() string {
	switch {
	case e.Cron != "" && e.TimeZone != "" && e.TimeZone != "UTC":
		return e.Cron + " " + e.TimeZone
	case e.Cron != "":
		return e.Cron
	case e.Every != 0:
		return "every " + e.Every.Short()
	case e.Delay != 0:
		return e.Delay.Short() + " after the end"
	case e.At != nil:
		return "at " + InZone(*e.At, e.TimeZone)
	}
	return "a function of " + e.Owner
}

// What says in words for people what a tick starts.
func (e *Entry) What() string {
	switch {
	case e.Flow != nil:
		return "flow " + e.Flow.Project + "/" + e.Flow.Flow
	case e.Job != nil:
		return "job " + e.Job.Kind
	}
	return "a function of " + e.Owner
}

// InZone is a time with the offset of a zone, as RFC 3339 has it; UTC if there is no such zone. RFC 3339 has no seconds of an offset, so a time with
// these is in UTC too.
func InZone(t time.Time, zone string) string {
	t = t.UTC()
	if loc, err := time.LoadLocation(zone); err == nil {
		if _, offset := t.In(loc).Zone(); offset%60 == 0 {
			t = t.In(loc)
		}
	}
	return t.Format(time.RFC3339)
}

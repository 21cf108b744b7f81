package loadtest

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5"
)

// statements counts what the server executes, by pg_stat_statements.
type statements struct {
	out io.Writer
}

// statementsSettings load the counting into a server. It costs some microseconds a statement.
var statementsSettings = map[string]string{
	"shared_preload_libraries":         "pg_stat_statements",
	"pg_stat_statements.track":         "top",
	"pg_stat_statements.track_utility": "on",
	"pg_stat_statements.max":           "2000",
}

// statement is one kind of statement, over all parameters.
type statement struct {
	Query    string
	Calls    int64
	Rows     int64
	Millis   float64 // execution, planning not included
	WALBytes float64
}

func createStatements(ctx context.Context, admin *pgx.Conn) error {
	if _, err := admin.Exec(ctx, "CREATE EXTENSION IF NOT EXISTS pg_stat_statements"); err != nil {
		return fmt.Errorf("count statements: %w", err)
	}
	return nil
}

// reset starts the counting anew. A nil receiver does nothing.
func (s *statements) reset(ctx context.Context, admin *pgx.Conn) error {
	if s == nil {
		return nil
	}
	if _, err := admin.Exec(ctx, "SELECT pg_stat_statements_reset()"); err != nil {
		return fmt.Errorf("count statements: %w", err)
	}
	return nil
}

// readStatements returns what ran since the last reset outside of the admin's own database, the longest first.
func readStatements(ctx context.Context, admin *pgx.Conn) ([]statement, error) {
	rows, err := admin.Query(ctx, `SELECT min(query), sum(calls)::bigint, sum(rows)::bigint, sum(total_exec_time),
			sum(wal_bytes)::float8
		FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
		WHERE d.datname <> current_database() GROUP BY queryid ORDER BY 4 DESC`)
	if err != nil {
		return nil, fmt.Errorf("count statements: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[statement])
	if err != nil {
		return nil, fmt.Errorf("count statements: %w", err)
	}
	return found, nil
}

// take prints the costliest statements of a phase.
func (s *statements) take(ctx context.Context, admin *pgx.Conn, engine, phase string, jobs int) error {
	if s == nil {
		return nil
	}
	found, err := readStatements(ctx, admin)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.out, "  %s %s, by statement:\n  %10s %10s %12s %10s\n", engine, phase, "calls", "rows", "us/job", "WAL/job")
	for i, one := range found {
		if err != nil || i == 15 {
			break
		}
		_, err = fmt.Fprintf(s.out, "  %10d %10d %12.2f %10.1f  %s\n", one.Calls, one.Rows, one.Millis*1000/float64(jobs),
			one.WALBytes/float64(jobs), oneLine(one.Query, 110))
	}
	return err
}

// oneLine shortens a statement to its first characters, without comments and line breaks.
func oneLine(query string, most int) string {
	var words []string
	for line := range strings.Lines(query) {
		text, _, _ := strings.Cut(line, "--")
		words = append(words, strings.Fields(text)...)
	}
	text := []rune(strings.Join(words, " "))
	if len(text) > most {
		return string(text[:most-3]) + "..."
	}
	return string(text)
}

package schematest

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Find looks for a text in all columns of all tables, those of bytes among them, and returns what tables hold it, with the row. For tests that
// something is stored nowhere: they should also see that it is found where it is.
func Find(t testing.TB, pool *pgxpool.Pool, text string) (rows []string) {
	t.Helper()
	answer, err := pool.Query(t.Context(), `SELECT relname FROM pg_class
		WHERE relnamespace = 'pelton'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition ORDER BY relname`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(answer, pgx.RowTo[string])
	if err != nil || len(tables) < 30 {
		t.Fatalf("tables %v: %v", tables, err)
	}
	for _, table := range tables {
		all, err := texts(t, pool, table)
		if fault, is := errors.AsType[*pgconn.PgError](err); is && fault.Code == "42P01" { // maintenance had made it, and dropped it
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range all {
			if strings.Contains(row, text) || strings.Contains(row, hex.EncodeToString([]byte(text))) {
				rows = append(rows, table+": "+row)
			}
		}
	}
	return rows
}

func texts(t testing.TB, pool *pgxpool.Pool, table string) ([]string, error) {
	t.Helper()
	answer, err := pool.Query(t.Context(), fmt.Sprintf(`SELECT r::text FROM pelton.%s r`, pgx.Identifier{table}.Sanitize()))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(answer, pgx.RowTo[string])
}

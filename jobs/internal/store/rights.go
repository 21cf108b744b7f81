package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// MissingRights lists what this session's role lacks to work jobs or have duties, as "INSERT on job_attempt".
func (s *Store) MissingRights(ctx context.Context, db DB) ([]string, error) {
	rows, err := db.Query(ctx, s.sql.Get("missing_rights"))
	if err != nil {
		return nil, fmt.Errorf("look at the role's rights: %w", err)
	}
	missing, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("look at the role's rights: %w", err)
	}
	return missing, nil
}

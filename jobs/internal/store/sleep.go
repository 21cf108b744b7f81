package store

import (
	"context"
	"fmt"
)

// Sleep registers an executor as a sleeper on lines.
func (s *Store) Sleep(ctx context.Context, executor int64, lines []string) error {
	if err := s.exec(ctx, "sleep", executor, lines); err != nil {
		return fmt.Errorf("register as a sleeper: %w", err)
	}
	return nil
}

// Awake takes an executor off the list of sleepers of lines.
func (s *Store) Awake(ctx context.Context, executor int64, lines []string) error {
	if err := s.exec(ctx, "awake", executor, lines); err != nil {
		return fmt.Errorf("take a sleeper off the list: %w", err)
	}
	return nil
}

// LookAgain looks for work before sleeping. writers are the open transactions that may still commit a ticket: those of watched
// that are left, or, if that is nil, all but those that the marker has passed because they stay open. Two statements, the writers first: one that ends in between has
// committed what the second then sees. In one statement, with a snapshot from before, it could be missed by both.
func (s *Store) LookAgain(ctx context.Context, heads []Head, watched []string) (work bool, writers []string, err error) {
	if err := s.Pool.QueryRow(ctx, s.sql.Get("writers_open"), watched).Scan(&writers); err != nil {
		return false, nil, fmt.Errorf("look for open writers: %w", err)
	}
	lines, priorities, marks, _ := headColumns(heads)
	if err := s.Pool.QueryRow(ctx, s.sql.Get("look_again"), lines, priorities, marks).Scan(&work); err != nil {
		return false, nil, fmt.Errorf("look before sleeping: %w", err)
	}
	return work, writers, nil
}

// LookLines returns the lines that hold a ticket, and the newest row of floor: if the marks have not read it, look again with
// new ones.
func (s *Store) LookLines(ctx context.Context, heads []Head) (found []string, newest int64, err error) {
	lines, priorities, marks, _ := headColumns(heads)
	if err := s.Pool.QueryRow(ctx, s.sql.Get("look_lines"), lines, priorities, marks).Scan(&found, &newest); err != nil {
		return nil, 0, fmt.Errorf("poll the line: %w", err)
	}
	return found, newest, nil
}

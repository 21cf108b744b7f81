package store

import (
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// jsonJob is a checked job as insert_json reads it.
type jsonJob struct {
	Kind         string     `json:"kind"`
	Args         string     `json:"args"`
	Queue        string     `json:"queue"`
	Priority     int16      `json:"priority"`
	MaxAttempts  int16      `json:"max_attempts"`
	Due          *time.Time `json:"due,omitempty"`
	Pending      bool       `json:"pending,omitempty"`
	Metadata     string     `json:"metadata,omitempty"`
	Tags         []string   `json:"tags,omitempty"`
	UniqueKey    string     `json:"unique_key,omitempty"` // hex
	UniqueStates int16      `json:"unique_states,omitempty"`
}

// InsertSQL is Insert in a database/sql transaction of any driver: one statement, one text parameter.
func (s *Store) InsertSQL(ctx context.Context, tx *sql.Tx, jobs []NewJob, hint bool) (in []Inserted, err error) {
	list := make([]jsonJob, len(jobs))
	for i, j := range jobs {
		list[i] = jsonJob{
			Kind: j.Kind, Args: string(j.Args), Queue: j.Queue, Priority: j.Priority, MaxAttempts: j.MaxAttempts, Due: j.Due,
			Pending: j.Pending, Metadata: string(j.Metadata), Tags: j.Tags, UniqueKey: hex.EncodeToString(j.UniqueKey),
			UniqueStates: j.UniqueStates,
		}
	}
	encoded, err := json.Marshal(list)
	if err != nil {
		return nil, fmt.Errorf("insert jobs: %w", err)
	}
	rows, err := tx.QueryContext(ctx, s.sql.Get("insert_json"), string(encoded), hint)
	if err != nil {
		return nil, fmt.Errorf("insert jobs: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var i Inserted
		if err := rows.Scan(&i.ID, &i.CreatedAt, &i.State, &i.Skipped); err != nil {
			return nil, fmt.Errorf("insert jobs: %w", err)
		}
		in = append(in, i)
	}
	return in, rows.Err()
}

package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// sweepLimits are short: what somebody holds is left for the next round.
var sweepLimits = Limits{Lock: 50 * time.Millisecond, Statement: 30 * time.Second}

// AnythingToSweep tells whether there are any voids and any unique keys. One statement.
func (s *Store) AnythingToSweep(ctx context.Context) (voids, keys bool, err error) {
	if err := s.Pool.QueryRow(ctx, s.sql.Get("anything_to_sweep")).Scan(&voids, &keys); err != nil {
		return false, false, fmt.Errorf("look for what to sweep: %w", err)
	}
	return voids, keys, nil
}

// SweepKeys gives up those of the next n unique keys after a key whose jobs hold them no longer. It returns how many, and the
// last key looked at, nil at the end.
func (s *Store) SweepKeys(ctx context.Context, after []byte, n int) (freed int, last []byte, err error) {
	if after == nil {
		after = []byte{}
	}
	err = s.Tx(ctx, sweepLimits, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, s.sql.Get("sweep_keys"), after, n).Scan(&freed, &last)
	})
	if err != nil {
		return 0, nil, fmt.Errorf("sweep unique keys: %w", err)
	}
	return freed, last, nil
}

package store

import (
	"github.com/jackc/pgx/v5"
)

// A list that is bounded in bytes is read in pieces, so that few rows are read for nothing.
const (
	firstPiece = 16
	mostPiece  = 100
)

// part reads a list in pieces until it has limit items, or so many bytes (0: no bound) in one at least, and tells whether more follow.
func part[T any](limit, bytes int, scan pgx.RowToFunc[T], read func(last *T, limit int) (pgx.Rows, error)) (list []T, more bool, err error) {
	var last *T
	size, most := 0, firstPiece
	for {
		piece := limit + 1 - len(list)
		if bytes > 0 {
			piece = min(piece, most)
		}
		rows, err := read(last, piece)
		if err != nil {
			return nil, false, err
		}
		before := len(list)
		for rows.Next() {
			if len(list) == limit || bytes > 0 && size >= bytes {
				rows.Close()
				return list, true, nil
			}
			size += rowBytes(rows)
			item, err := scan(rows)
			if err != nil {
				rows.Close()
				return nil, false, err
			}
			list = append(list, item)
		}
		if err := rows.Err(); err != nil {
			return nil, false, err
		}
		if len(list)-before < piece {
			return list, false, nil
		}
		last, most = &list[len(list)-1], min(2*most, mostPiece)
	}
}

// rowBytes is how much a row takes.
func rowBytes(rows pgx.Rows) (size int) {
	for _, v := range rows.RawValues() {
		size += len(v)
	}
	return size
}

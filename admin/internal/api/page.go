package api

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
)

// pageBytes is what the items of a page that may be large take together, about: such a page ends early.
const pageBytes = 4 << 20

// Paging is what every list takes.
type Paging struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"at most so many; a page whose items are large has fewer"`
	Cursor string `query:"cursor" maxLength:"1000" doc:"continue a list: next_cursor of the page before, with all else as it was"`
}

// Page is a part of a list.
type Page[T any] struct {
	Items      []T    `json:"items"`
	NextCursor string `json:"next_cursor,omitempty" doc:"of the page that follows; absent: this was the last"`
}

// place is a cursor's content.
type place struct {
	List string          `json:"l"`
	At   json.RawMessage `json:"p"`
}

// cursorTo is the cursor that continues a list after a position.
func cursorTo(list string, position any) string {
	at, err := json.Marshal(position)
	if err != nil {
		panic(err) // positions are ours
	}
	text, err := json.Marshal(place{list, at})
	if err != nil {
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// positionOf reads a cursor of a list; nil: from the start.
func positionOf[P any](list, cursor string) (*P, error) {
	if cursor == "" {
		return nil, nil //nolint:nilnil // documented above
	}
	refused := newProblem("bad-cursor", "query.cursor: %q is no cursor of this list: take next_cursor of the page before", cursor)
	text, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil {
		return nil, refused
	}
	var p place
	if strictly(text, &p) != nil || p.List != list {
		return nil, refused
	}
	position := new(P)
	if strictly(p.At, position) != nil {
		return nil, refused
	}
	return position, nil
}

// strictly reads one JSON value, not null, that has no other fields.
func strictly(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil && (d.InputOffset() != int64(len(text)) || bytes.Equal(text, []byte("null"))) {
		err = errors.New("not a single value")
	}
	return err
}

// pageOf makes a page of at most limit items of a list of which one more was asked for, if there is one.
func pageOf[T any](list string, items []T, limit int, position func(T) any) Page[T] {
	if len(items) <= limit {
		return Page[T]{Items: items}
	}
	return Page[T]{items[:limit], cursorTo(list, position(items[limit-1]))}
}

// partOf makes a page of items of a list of which more may follow.
func partOf[T any](list string, items []T, more bool, position func(T) any) Page[T] {
	if !more {
		return Page[T]{Items: items}
	}
	return Page[T]{items, cursorTo(list, position(items[len(items)-1]))}
}

// pieceItems is how many items of a list are read at once if they may be large.
const pieceItems = 50

// readPage makes a page of a list that is read in pieces, after an item (nil: from the start), until it has limit items or pageBytes.
func readPage[T any](list string, limit int, position func(T) any, read func(last *T, limit int) ([]T, error)) (Page[T], error) {
	items, size := []T{}, 0
	var last *T
	for {
		piece, err := read(last, pieceItems)
		if err != nil {
			return Page[T]{}, err
		}
		for i := range piece {
			if len(items) == limit || size >= pageBytes && len(items) > 0 {
				return partOf(list, items, true, position), nil
			}
			text, err := json.Marshal(piece[i])
			if err != nil {
				return Page[T]{}, err
			}
			size += len(text)
			items = append(items, piece[i])
		}
		if len(piece) < pieceItems {
			return Page[T]{Items: items}, nil
		}
		last = &piece[len(piece)-1]
	}
}

// pageFrom makes a page of a list that is read as a whole and in order of a key.
func pageFrom[T any, K cmp.Ordered](list string, all []T, in Paging, key func(T) K) (Page[T], error) {
	after, err := positionOf[K](list, in.Cursor)
	if err != nil {
		return Page[T]{}, err
	}
	if after != nil {
		i, found := slices.BinarySearchFunc(all, *after, func(t T, k K) int { return cmp.Compare(key(t), k) })
		if found {
			i++
		}
		all = all[i:]
	}
	return pageOf(list, all[:min(len(all), in.Limit+1)], in.Limit, func(t T) any { return key(t) }), nil
}

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}

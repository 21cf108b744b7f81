package joblog

import (
	"bytes"
	"context"

	"github.com/jackc/pgx/v5"
)

// limited passes on the beginning of a log only.
func limited(head Limit, yield func(Chunk, error) bool) func(Chunk, error) bool {
	if head == (Limit{}) {
		return yield
	}
	left := head
	return func(c Chunk, err error) bool {
		if err != nil {
			return yield(c, err)
		}
		full := false
		if head.Lines > 0 {
			c.Data, full = firstLines(c.Data, &left.Lines)
		}
		if head.Bytes > 0 {
			if int64(len(c.Data)) >= left.Bytes {
				c.Data, full = c.Data[:left.Bytes], true
			}
			left.Bytes -= int64(len(c.Data))
		}
		return yield(c, nil) && !full
	}
}

// firstLines cuts data after the number of lines left, and counts down.
func firstLines(data []byte, left *int64) ([]byte, bool) {
	for at := 0; ; {
		n := bytes.IndexByte(data[at:], '\n')
		if n < 0 {
			return data, false
		}
		at += n + 1
		if *left--; *left == 0 {
			return data[:at], true
		}
	}
}

// tailStart walks back from the end and returns the chunk in which the tail begins, and how many of its bytes come before.
func (r *reader) tailStart(ctx context.Context) (id, trim int64, err error) {
	left := r.opts.Tail
	before, err := r.below(ctx)
	if err != nil {
		return 0, 0, r.failed(err)
	}
	first := r.after + 1
	atEnd := true
	for {
		chunks, err := r.pageBack(ctx, before)
		if err != nil {
			return 0, 0, err
		}
		for _, c := range chunks {
			first, before = c.id, c.id
			if r.opts.Tail.Lines > 0 {
				if atEnd && c.data[len(c.data)-1] == '\n' {
					left.Lines++ // this one ends the last line, it does not precede it
				}
				trim = lastLines(c.data, &left.Lines)
			}
			atEnd = false
			if r.opts.Tail.Bytes > 0 {
				trim = max(trim, int64(c.size)-left.Bytes)
				left.Bytes -= int64(c.size)
			}
			switch {
			case trim == int64(c.size): // the line before ends with this chunk
				return c.id + 1, 0, nil
			case trim > 0 || r.opts.Tail.Bytes > 0 && left.Bytes <= 0:
				return c.id, trim, nil
			}
		}
		if len(chunks) < pageRows {
			return first, 0, nil
		}
	}
}

// lastLines counts newlines from the end down to none left, and returns the offset after that one; 0 if some are left.
func lastLines(data []byte, left *int64) int64 {
	for end := len(data); ; {
		n := bytes.LastIndexByte(data[:end], '\n')
		if n < 0 {
			return 0
		}
		if *left--; *left == 0 {
			return int64(n + 1)
		}
		end = n
	}
}

// backward is a chunk met while walking back; its data is read only when lines are counted.
type backward struct {
	id   int64
	size int
	data []byte
}

func (r *reader) pageBack(ctx context.Context, before int64) ([]backward, error) {
	found, err := r.db.Query(ctx, statements(r.schema).Get("read_back"), pgx.QueryExecModeCacheDescribe,
		r.jobID, r.run, r.after, before, r.opts.streams(), r.opts.Tail.Lines > 0, pageRows)
	if err != nil {
		return nil, r.failed(err)
	}
	chunks, err := pgx.CollectRows(found, func(row pgx.CollectableRow) (backward, error) {
		var c backward
		return c, row.Scan(&c.id, &c.size, &c.data)
	})
	if err != nil {
		return nil, r.failed(err)
	}
	return chunks, nil
}

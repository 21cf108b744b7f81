package joblog

import (
	"fmt"
	"io"
	"iter"
)

// Copy writes chunks to dst as a person wants to see them: the bytes as they are, and a line of its own where some are
// missing. It stops at the first error.
func Copy(dst io.Writer, chunks iter.Seq2[Chunk, error]) error {
	fresh := true // at the beginning of a line
	for c, err := range chunks {
		if err != nil {
			return err
		}
		if c.Skipped > 0 {
			if err := writeGap(dst, c, fresh); err != nil {
				return err
			}
		}
		if len(c.Data) == 0 {
			continue
		}
		if _, err := dst.Write(c.Data); err != nil {
			return err
		}
		fresh = c.Data[len(c.Data)-1] == '\n'
	}
	return nil
}

func writeGap(dst io.Writer, c Chunk, fresh bool) error {
	line := fmt.Sprintf("[... %d bytes of stream %c not kept ...]\n", c.Skipped, c.Stream)
	if !fresh {
		line = "\n" + line
	}
	_, err := io.WriteString(dst, line)
	return err
}

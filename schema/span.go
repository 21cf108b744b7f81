package schema

import (
	"fmt"
	"math"
	"strings"
)

// span is a range of job ids that is a whole number of partitions in both job and job_attempt; nearly always one in each.
type span struct {
	from, to       int64
	jobs, attempts []Partition
}

// spans cuts the bounded partitions of both tables into the shortest ranges that have the same ends in both.
func spans(jobs, attempts []Partition) (all []span) {
	var s span
	for i, j := 0, 0; ; {
		switch {
		case len(s.jobs) == 0 || len(s.attempts) > 0 && end(s.jobs) < end(s.attempts):
			if i == len(jobs) || jobs[i].To == math.MaxInt64 {
				return all
			}
			s.jobs = append(s.jobs, jobs[i])
			i++
		case len(s.attempts) == 0 || end(s.attempts) < end(s.jobs):
			if j == len(attempts) || attempts[j].To == math.MaxInt64 {
				return all
			}
			s.attempts = append(s.attempts, attempts[j])
			j++
		default:
			s.from, s.to = s.jobs[0].From, end(s.jobs)
			all = append(all, s)
			s = span{}
		}
	}
}

func end(parts []Partition) int64 { return parts[len(parts)-1].To }

// old tells whether the span holds survivors only.
func (s span) old() bool {
	for _, p := range s.jobs {
		if p.State != PartitionOld {
			return false
		}
	}
	return true
}

// join makes one span of neighbours.
func join(spans []span) span {
	s := span{from: spans[0].from, to: spans[len(spans)-1].to}
	for _, one := range spans {
		s.jobs = append(s.jobs, one.jobs...)
		s.attempts = append(s.attempts, one.attempts...)
	}
	return s
}

// oids is an SQL array of the partitions' oids.
func oids(parts []Partition) string {
	list := make([]string, len(parts))
	for i, p := range parts {
		list[i] = fmt.Sprint(p.oid)
	}
	return "ARRAY[" + strings.Join(list, ", ") + "]::oid[]"
}

package document

import "github.com/peltonq/pelton/jobs"

// NotErased is what an erase cannot reach.
const NotErased = "backups, WAL and replicas until they are gone; other jobs and outputs that were made of the same data; mails that were sent"

// Erased is what was blanked of a job.
type Erased struct {
	ID int64 `json:"id"`
	jobs.Erased
}

// NewErased shows what was blanked.
func NewErased(id int64, done *jobs.Erased) Erased {
	e := Erased{id, *done}
	e.Jobs = append([]int64{}, done.Jobs...)
	return e
}

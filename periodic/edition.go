package periodic

import (
	"fmt"
	"strconv"
	"strings"
)

// Edition is a schedule as it was at some time: which one it was, and in which version. It never comes again: a schedule that is made under the name of one that was
// deleted has another ID. The zero Edition is that of no schedule. As a text it is "ID.VERSION".
type Edition struct {
	ID      int64
	Version int
}

// Edition is that of the schedule as it was read.
func (e *Entry) Edition() Edition { return Edition{e.ID, e.Version} }

// edition is that of a schedule that is locked; nil: there is none.
func (h *held) edition() Edition {
	if h == nil {
		return Edition{}
	}
	return Edition{h.schedule.id, h.schedule.version}
}

// String is the edition as MarshalText writes it.
func (e Edition) String() string { return fmt.Sprintf("%d.%d", e.ID, e.Version) }

// MarshalText implements encoding.TextMarshaler.
func (e Edition) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. It takes editions of schedules only, not the zero one.
func (e *Edition) UnmarshalText(text []byte) error {
	id, version, _ := strings.Cut(string(text), ".")
	no, err := strconv.ParseInt(id, 10, 64)
	if err == nil {
		e.ID = no
		e.Version, err = strconv.Atoi(version)
	}
	if err != nil || e.ID < 1 || e.Version < 1 || e.String() != string(text) {
		return fmt.Errorf("%q is no edition of a schedule: want ID.VERSION, as 12.7", text)
	}
	return nil
}

// EditionError says that a schedule is not of the edition that a change was made for.
type EditionError struct {
	Name          string
	Wanted, Found Edition // zero: none
}

func (e *EditionError) Error() string {
	var why string
	switch {
	case e.Found == Edition{}:
		why = "it was deleted meanwhile"
	case e.Wanted == Edition{}:
		why = "the name is taken"
	case e.Found.ID != e.Wanted.ID:
		why = "it was deleted meanwhile, and another one made under its name"
	default:
		why = fmt.Sprintf("it was changed meanwhile: its version is %d, not %d", e.Found.Version, e.Wanted.Version)
	}
	return fmt.Sprintf("schedule %q: %s", e.Name, why)
}

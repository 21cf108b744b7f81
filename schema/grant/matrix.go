package grant

import (
	"cmp"
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

//go:embed matrix.txt
var text string

// Text is the matrix as people read it.
func Text() string { return text }

// Role is something that a role of the database may be for.
type Role string

// The roles.
const (
	Enqueuer  Role = "enqueuer"  // inserts jobs in its own transactions, unique ones too, and reads none
	Starter   Role = "starter"   // starts runs of flows in its own transactions
	Worker    Role = "worker"    // works jobs and writes their logs
	Scheduler Role = "scheduler" // has the duties, advances flows, fires schedules
	Auditor   Role = "auditor"   // reads everything but hashes and secrets
	Admin     Role = "admin"     // operates, and serves the page and the API: users and tokens too
)

// Roles are all roles.
func Roles() []Role { return []Role{Enqueuer, Starter, Worker, Scheduler, Auditor, Admin} }

// Section is a part of the matrix: what a role needs for one thing that Pelton does.
type Section string

// The sections.
const (
	Jobs      Section = "jobs"
	Flows     Section = "flows"
	Schedules Section = "schedules"
	Access    Section = "access"
)

// right is one privilege on an object.
type right struct {
	object    string
	privilege string // SELECT, INSERT, UPDATE, DELETE, USAGE
	column    string // empty: of the whole object
}

func (r right) String() string {
	if r.column != "" {
		return fmt.Sprintf("%s (%s) on %s", r.privilege, r.column, r.object)
	}
	return r.privilege + " on " + r.object
}

// sequence tells objects apart by their names.
func (r right) sequence() bool { return strings.HasSuffix(r.object, "_seq") }

// row is a line of the matrix.
type row struct {
	section Section
	object  string
	rights  map[Role][]right
}

var (
	privileges = map[byte]string{'r': "SELECT", 'a': "INSERT", 'w': "UPDATE", 'd': "DELETE", 'U': "USAGE"}
	cell       = regexp.MustCompile(`([rawdU])(?:\(([a-z0-9_,]+)\))?`)
	wholeCell  = regexp.MustCompile(`^(-|([rawdU](\([a-z0-9_,]+\))?)+)$`)
)

// parsed are the lines of the matrix, in order.
var parsed = mustParse(text)

func mustParse(text string) []row {
	rows, err := parse(text)
	if err != nil {
		panic(fmt.Errorf("schema/grant/matrix.txt: %w", err)) // the file is ours
	}
	return rows
}

func parse(text string) (rows []row, err error) {
	var section Section
	var columns []Role
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || strings.HasPrefix(words[0], "#"):
		case strings.HasPrefix(words[0], "["):
			section = Section(strings.Trim(words[0], "[]"))
		case columns == nil:
			for _, word := range words[1:] {
				columns = append(columns, Role(word))
			}
			if !slices.Equal(columns, Roles()) {
				return nil, fmt.Errorf("its columns are %q, the roles %q", columns, Roles())
			}
		case len(words) != 1+len(columns):
			return nil, fmt.Errorf("%q has %d cells, want %d", words[0], len(words)-1, len(columns))
		default:
			r := row{section: section, object: words[0], rights: map[Role][]right{}}
			for i, role := range columns {
				if r.rights[role], err = parseCell(words[0], words[i+1]); err != nil {
					return nil, err
				}
			}
			rows = append(rows, r)
		}
	}
	return rows, nil
}

func parseCell(object, text string) (rights []right, err error) {
	if !wholeCell.MatchString(text) {
		return nil, fmt.Errorf("%q of %s: want letters of rawdU, each with columns in brackets or without, or -", text, object)
	}
	for _, m := range cell.FindAllStringSubmatch(text, -1) {
		for column := range strings.SplitSeq(m[2], ",") {
			rights = append(rights, right{object, privileges[m[1][0]], column})
		}
	}
	return rights, nil
}

// rank is the order in which rights on one object are listed.
func rank(r right) int {
	return slices.Index([]string{"SELECT", "INSERT", "UPDATE", "DELETE", "USAGE"}, r.privilege)
}

// rightsOf are the rights of some roles together in some sections (none given: all), in the matrix's order, each once. What is given on a
// whole object is not given on its columns beside.
func rightsOf(roles []Role, sections ...Section) (rights []right) {
	for _, row := range parsed {
		if len(sections) > 0 && !slices.Contains(sections, row.section) {
			continue
		}
		var here []right
		for _, role := range roles {
			here = append(here, row.rights[role]...)
		}
		slices.SortStableFunc(here, func(a, b right) int { return cmp.Compare(rank(a), rank(b)) })
		for _, r := range here {
			whole := right{r.object, r.privilege, ""}
			if !slices.Contains(rights, r) && (r == whole || !slices.Contains(here, whole)) {
				rights = append(rights, r)
			}
		}
	}
	return rights
}

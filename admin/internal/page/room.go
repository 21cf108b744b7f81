package page

import "github.com/peltonq/pelton/admin/access"

// room is a part of the page with a place in the navigation.
type room struct {
	Name  string // in the navigation; empty: not there
	Path  string
	Sees  func(access.Actor) bool // who finds it there; nil: viewers of everything
	Mount func(*Page)             // adds its routes
}

// rooms are all there are, in the order of the navigation. A new one is a file and a line here.
var rooms = []room{
	overviewRoom,
	jobsRoom,
	flowsRoom,
	runsRoom,
	schedulesRoom,
	queuesRoom,
	executorsRoom,
	deadRoom,
	alertsRoom,
	partitionsRoom,
	auditRoom,
	adminRoom,
	accountRoom,
}

// link is an entry of the navigation.
type link struct {
	Name, Path string
	Here       bool
}

// navigation lists the rooms that an actor sees; path is that of the request.
func (p *Page) navigation(a access.Actor, path string) []link {
	var links []link
	for _, r := range p.rooms {
		sees := r.Sees
		if sees == nil {
			sees = func(a access.Actor) bool { return a.May(access.Viewer, "") }
		}
		if r.Name != "" && sees(a) {
			links = append(links, link{r.Name, r.Path, within(path, r.Path)})
		}
	}
	return links
}

// within tells whether a path is a room's, or below it.
func within(path, room string) bool {
	return path == room || room != "/" && len(path) > len(room) && path[:len(room)] == room && path[len(room)] == '/'
}

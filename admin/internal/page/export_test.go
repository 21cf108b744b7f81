package page

import "net/http"

// Visible is visible.
var Visible = visible

// VisiblePage is visiblePage.
var VisiblePage = visiblePage

// Patterns are the patterns of all routes.
func Patterns() []string {
	p := Mount(http.NewServeMux(), Config{Schema: "pelton"})
	defer p.Close()
	return p.Routes()
}

// RoomPaths are where the navigation leads.
func RoomPaths() (paths []string) {
	for _, r := range rooms {
		paths = append(paths, r.Path)
	}
	return paths
}

package page

import "net/http"

// confirmation asks once more before something is done that cannot be undone.
type confirmation struct {
	Text, Action, Button, Back string            // what will happen; where the form goes; what its button says; the way out
	Fields                     map[string]string // sent along
}

// confirm shows a page with a question and a form.
func (p *Page) confirm(w http.ResponseWriter, r *http.Request, title string, c confirmation) error {
	return p.render(w, r, "confirm", title, c)
}

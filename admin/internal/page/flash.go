package page

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"

	"github.com/peltonq/pelton/admin/access"
)

// flashCookie carries a message over a redirect.
const flashCookie = "pelton_flash"

// flashBytes bounds a message: browsers bound cookies.
const flashBytes = 1000

// done ends a form: the browser goes on to a path of this server, and there the message is shown, once.
func (p *Page) done(w http.ResponseWriter, r *http.Request, to, format string, args ...any) error {
	text := strings.ToValidUTF8(fmt.Sprintf(format, args...), "\uFFFD")
	if len(text) > flashBytes {
		text = strings.ToValidUTF8(text[:flashBytes], "") + " ..."
	}
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // a message, no secret; without TLS it is needed too
		Name: flashCookie, Value: base64.RawURLEncoding.EncodeToString([]byte(text)), Path: "/", MaxAge: 60, HttpOnly: true,
		SameSite: http.SameSiteLaxMode, Secure: p.config.Guard.Secure(r),
	})
	http.Redirect(w, r, access.SafeNext(to), http.StatusSeeOther)
	return nil
}

// back is where a form came from, if it says so in its field "back", else a path.
func back(r *http.Request, otherwise string) string {
	if to := r.PostFormValue("back"); access.SafeNext(to) == to {
		return to
	}
	return otherwise
}

// flash takes the message of the last form.
func (p *Page) flash(w http.ResponseWriter, r *http.Request) string {
	cookie, err := r.Cookie(flashCookie)
	if err != nil {
		return ""
	}
	http.SetCookie(w, &http.Cookie{Name: flashCookie, Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: p.config.Guard.Secure(r)})
	text, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil {
		return ""
	}
	return string(text)
}

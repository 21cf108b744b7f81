package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/peltonq/pelton/admin/access"
	"github.com/peltonq/pelton/admin/internal/page"
)

// loginBytes bounds the body of a login.
const loginBytes = 64 << 10

// routeLogin adds what is open to everybody: how to log in.
func (s *Server) routeLogin(mux *http.ServeMux) {
	mux.HandleFunc("GET "+page.AssetPath, page.Assets)
	mux.HandleFunc("GET "+access.LoginPath, func(w http.ResponseWriter, r *http.Request) {
		s.showLogin(w, http.StatusOK, page.LoginForm{Next: r.FormValue("next")})
	})
	mux.Handle("POST "+access.LoginPath, limitBody(loginBytes, http.HandlerFunc(s.login)))
	mux.Handle("POST /logout", limitBody(loginBytes, http.HandlerFunc(s.logout)))
	mux.HandleFunc("GET /login/oidc", s.guard.LoginOIDC)
	mux.HandleFunc("GET "+access.CallbackPath, s.guard.CallbackOIDC)
}

func (s *Server) showLogin(w http.ResponseWriter, status int, form page.LoginForm) {
	form.OIDC = s.guard.HasOIDC()
	form.Next = access.SafeNext(form.Next)
	if err := page.ShowLogin(w, status, form); err != nil {
		s.config.Logger.Error("login page", "error", err)
	}
}

// showRefusal tells a browser why it gets something else than it asked for.
func showRefusal(w http.ResponseWriter, r *http.Request, status int, title, detail string) {
	show := func() error { return page.ShowRefusal(w, status, title, detail) }
	if status == http.StatusUnauthorized && r.Method == http.MethodPost && r.URL.Path != access.LoginPath {
		show = func() error { return page.ShowLoggedOut(w, formPage(r)) }
	}
	if err := show(); err != nil {
		http.Error(w, title, status)
	}
}

// formPage is the page from which a form was sent, as far as the browser says.
func formPage(r *http.Request) string {
	from, err := url.Parse(r.Referer())
	if err != nil || from.Host != r.Host {
		return "/"
	}
	return access.SafeNext(from.RequestURI())
}

// login takes a form from a browser, or JSON from a program: {"name": ..., "password": ...}.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	var in struct{ Name, Password, Next string }
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	form := kind != "application/json"
	var err error
	if form {
		if err = r.ParseForm(); err == nil {
			in.Name, in.Password, in.Next = r.PostForm.Get("name"), r.PostForm.Get("password"), r.PostForm.Get("next")
		}
	} else {
		err = json.NewDecoder(r.Body).Decode(&in)
	}
	if large, is := errors.AsType[*http.MaxBytesError](err); is {
		http.Error(w, fmt.Sprintf("the login has more than %d bytes", large.Limit), http.StatusRequestEntityTooLarge)
		return
	}
	if err != nil {
		http.Error(w, "the login cannot be read: want a form or JSON with name and password", http.StatusBadRequest)
		return
	}
	err = s.guard.Login(w, r, in.Name, in.Password)
	limited, waits := errors.AsType[*access.LimitedError](err)
	switch {
	case form && waits:
		w.Header().Set("Retry-After", strconv.Itoa(int((limited.After+time.Second-1)/time.Second)))
		s.showLogin(w, http.StatusTooManyRequests, page.LoginForm{Name: in.Name, Next: in.Next, Error: err.Error()})
	case form && errors.Is(err, access.ErrLogin):
		s.showLogin(w, http.StatusUnauthorized, page.LoginForm{Name: in.Name, Next: in.Next, Error: err.Error()})
	case err != nil:
		s.guard.Deny(w, r, err)
	case form:
		http.Redirect(w, r, access.SafeNext(in.Next), http.StatusSeeOther)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	if err := s.guard.Logout(w, r); err != nil {
		s.guard.Deny(w, r, err)
		return
	}
	http.Redirect(w, r, access.LoginPath, http.StatusSeeOther)
}

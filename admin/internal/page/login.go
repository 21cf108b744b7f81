package page

import "net/http"

// LoginForm is what the login shows.
type LoginForm struct {
	Name, Next, Error string
	OIDC              bool // there is a provider of logins
}

// ShowLogin shows the login.
func ShowLogin(w http.ResponseWriter, status int, form LoginForm) error {
	return write(w, status, "login", view{Title: "Log in", Data: form})
}

// ShowRefusal tells a browser why it gets something else than it asked for.
func ShowRefusal(w http.ResponseWriter, status int, title, detail string) error {
	return write(w, status, "refused", view{Title: title, Data: refusal{Detail: detail}})
}

// ShowLoggedOut tells a browser that a form was not taken, since nobody is logged in, and how to send it all the same. next is the page of the form.
func ShowLoggedOut(w http.ResponseWriter, next string) error {
	return write(w, http.StatusUnauthorized, "refused", view{Title: "Not logged in", Data: refusal{
		Detail: "Your session has ended, or you have logged out. Nothing was done with the form that you sent, and what you typed is not lost: " +
			"log in in another tab, then come back to this one and reload it; the browser asks whether to send the form once more. Or go back to the form.",
		Next: next,
	}})
}

type refusal struct {
	Detail string
	Next   string // where the login leads, in a tab of its own; empty: the login takes the place of this page
}

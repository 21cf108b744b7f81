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
	return write(w, status, "refused", view{Title: title, Data: fault{Detail: detail}})
}

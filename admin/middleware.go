package admin

import (
	"net/http"
)

// securityHeaders tells browsers what pages may do: nothing but show what comes from here. secure: the connection is TLS.
//
// The referrer policy is same-origin and not no-referrer, with which browsers send "Origin: null", and every form would be refused.
func securityHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "+
			"connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		if r.TLS != nil {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		next.ServeHTTP(w, r)
	})
}

// limitBody cuts a request's body off after n bytes.
func limitBody(n int64, next http.Handler) http.Handler {
	return http.MaxBytesHandler(next, n)
}

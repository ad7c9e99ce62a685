package page

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net"
	"net/http"
	"strings"
)

// newToken has 128 random bits, in characters that a URL's fragment takes as they are.
func newToken() string {
	var bits [16]byte
	rand.Read(bits[:]) // never fails: it ends the program instead
	return base64.RawURLEncoding.EncodeToString(bits[:])
}

// contentPolicy lets the page run its own scripts and nothing else: no inline script, no foreign origin, no frame, and
// no string that becomes markup (Trusted Types without any policy).
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; " +
	"worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// headers are set on every answer, refusals included.
func headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin-allow-popups")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		next.ServeHTTP(w, r)
	})
}

// localHost refuses names other than loopback's: a page of another origin whose name resolves to 127.0.0.1 (DNS
// rebinding) sends its own. The port may be any: SSH forwards change it.
func localHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLocal(r.Host) {
			refuse(w, http.StatusForbidden, "this page is served to localhost alone: open it as 127.0.0.1, localhost or [::1]")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func isLocal(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	switch strings.Trim(name, "[]") {
	case "127.0.0.1", "localhost", "::1":
		return true
	}
	return false
}

// authorised answers only requests of the page itself, which sends the token in a header. A cookie would not do: cookies
// ignore ports, so that any other server on this machine would receive it.
func (s *Server) authorised(next http.Handler) http.Handler {
	want := sha256.Sum256([]byte("Bearer " + s.token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
			refuse(w, http.StatusForbidden, "another origin asked for data: the page answers its own requests alone")
			return
		}
		got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
		if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			refuse(w, http.StatusUnauthorized, "the token is missing or wrong: open the address that ebpfprof serve printed")
			return
		}
		next.ServeHTTP(w, r)
	})
}

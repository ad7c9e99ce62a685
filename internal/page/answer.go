package page

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/ebpfprof/ebpfprof/internal/text/printable"
)

// refuse answers with one sentence, as JSON.
func refuse(w http.ResponseWriter, status int, sentence string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	writeJSON(w, map[string]string{"error": printable.Text(sentence)})
}

func writeJSON(w http.ResponseWriter, document any) {
	var text bytes.Buffer
	out := json.NewEncoder(printable.JSON(&text))
	out.SetEscapeHTML(false)
	if out.Encode(document) == nil {
		_, _ = w.Write(text.Bytes()) // who closed the connection reads no answer
	}
}

// problem is an error with the status that it is answered with.
type problem struct {
	status int
	err    error
}

func (p problem) Error() string { return p.err.Error() }
func (p problem) Unwrap() error { return p.err }

func badRequest(format string, args ...any) error {
	return problem{http.StatusBadRequest, fmt.Errorf(format, args...)}
}

func notFound(format string, args ...any) error {
	return problem{http.StatusNotFound, fmt.Errorf(format, args...)}
}

// answer makes a handler of a function that returns a document.
func (s *edition) answer(f func(*http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		document, err := f(r)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		writeJSON(w, document)
	})
}

// fail answers with the sentence of an error.
func (s *edition) fail(w http.ResponseWriter, r *http.Request, err error) {
	var known problem
	switch {
	case r.Context().Err() != nil:
		// The page asked for something else meanwhile.
	case gone(s.root):
		refuse(w, http.StatusGone, fmt.Sprintf("the dataset %s was removed while the page was open", s.root))
	case errors.As(err, &known):
		refuse(w, known.status, known.Error())
	case errors.Is(err, context.DeadlineExceeded):
		refuse(w, http.StatusGatewayTimeout, fmt.Sprintf("no answer within %s: choose a shorter time range", s.options.Timeout))
	default:
		refuse(w, http.StatusInternalServerError, err.Error())
	}
}

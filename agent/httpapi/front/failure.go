package front

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/internal/messages"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// StatusError is an error whose HTTP status is not that of its code.
type StatusError struct {
	Status int
	Err    *structs.Error
}

func (e *StatusError) Error() string { return e.Err.Error() }
func (e *StatusError) Unwrap() error { return e.Err }

// RetryError asks the caller to wait.
type RetryError struct {
	After time.Duration
	Err   *structs.Error
}

func (e *RetryError) Error() string { return e.Err.Error() }
func (e *RetryError) Unwrap() error { return e.Err }

// Fail renders an error as the answer. Failures of ours are logged with a
// reference that the answer carries; their text stays inside.
func (f *Front) Fail(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		return // nobody listens any more
	}
	var failure *structs.Error
	if !errors.As(err, &failure) {
		failure = f.internal(w, r, err)
	}
	status := failure.Code.HTTPStatus()
	var special *StatusError
	if errors.As(err, &special) {
		status = special.Status
	}
	var retry *RetryError
	if errors.As(err, &retry) {
		status = http.StatusTooManyRequests
		w.Header().Set("Retry-After", fmt.Sprint(int(retry.After.Seconds())+1))
	}
	if failure.Code == structs.CodeUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	rendered := Render(failure, AcceptedLanguage(r.Header.Get("Accept-Language")))
	data, err := json.Marshal(rendered)
	if err != nil {
		f.log.Error("encode error", logkey.Error, err)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	if _, err := w.Write(append(data, '\n')); err != nil {
		f.log.Debug("write error", logkey.Error, err)
	}
}

func (f *Front) internal(w http.ResponseWriter, r *http.Request, err error) *structs.Error {
	var reference [4]byte
	rand.Read(reference[:]) // never fails
	text := hex.EncodeToString(reference[:])
	f.log.Error("request failed", "reference", text, logkey.Request, w.Header().Get(api.HeaderRequestID), logkey.Method, r.Method, logkey.Path, r.URL.Path, logkey.Error, err)
	if errors.Is(err, context.DeadlineExceeded) {
		return structs.NewError(structs.CodeTimeout, "agent.timeout")
	}
	return structs.NewError(structs.CodeInternal, "agent.internal", "reference", text)
}

// Render fills in the texts of an error, and of those inside it.
func Render(e *structs.Error, language messages.Language) *structs.Error {
	filled := *e
	filled.Message = messages.Text(language, e.ID, e.Params)
	hint := e.Params["hint_id"]
	if hint == "" {
		hint = e.ID + ".hint"
	}
	if messages.Has(language, hint) {
		filled.Hint = messages.Text(language, hint, e.Params)
	}
	if len(e.Details) > 0 {
		filled.Details = make([]structs.Error, len(e.Details))
		for i := range e.Details {
			filled.Details[i] = *Render(&e.Details[i], language)
		}
	}
	return &filled
}

// AcceptedLanguage reads the first language of an Accept-Language header.
func AcceptedLanguage(header string) messages.Language {
	for _, part := range strings.Split(header, ",") {
		tag, _, _ := strings.Cut(strings.TrimSpace(part), ";")
		switch primary, _, _ := strings.Cut(strings.ToLower(tag), "-"); primary {
		case "zh":
			return messages.Chinese
		case "en":
			return messages.English
		}
	}
	return messages.English
}

package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// lineWriter writes JSON lines and pushes each to the reader at once.
type lineWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func newLineWriter(w http.ResponseWriter) *lineWriter {
	return &lineWriter{w: w, control: http.NewResponseController(w)}
}

func (l *lineWriter) write(line api.EventLine) error {
	data, err := json.Marshal(line)
	if err != nil {
		return err
	}
	return l.push(append(data, '\n'))
}

// push writes bytes within writeTimeout; a reader that stalls is dropped.
func (l *lineWriter) push(data []byte) error {
	if err := l.add(data); err != nil {
		return err
	}
	return l.control.Flush()
}

// add is push for what more will follow at once: some may be sent later.
func (l *lineWriter) add(data []byte) error {
	if err := l.control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	_, err := l.w.Write(data)
	return err
}

// fail ends the stream with the reason, if the reader is still there.
func (l *lineWriter) fail(r *front.Request, cause error) {
	var failure *structs.Error
	if errors.As(cause, &failure) {
		_ = l.write(api.EventLine{Error: front.Render(failure, front.AcceptedLanguage(r.Header.Get("Accept-Language")))})
	}
}

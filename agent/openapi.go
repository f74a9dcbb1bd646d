package agent

import (
	"sync"

	"nomadlike/agent/openapi"
)

// writeOpenAPI answers with the document.
func writeOpenAPI() handler {
	document := sync.OnceValues(openapi.Document)
	return func(r *request) error {
		data, err := document()
		if err != nil {
			return err
		}
		r.w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = r.w.Write(data)
		return nil
	}
}

package httpapi

import (
	"sync"

	"nomadlike/agent/httpapi/front"
	"nomadlike/agent/openapi"
)

// writeOpenAPI answers with the document.
func writeOpenAPI() front.Handler {
	document := sync.OnceValues(openapi.Document)
	return func(r *front.Request) error {
		data, err := document()
		if err != nil {
			return err
		}
		r.Writer.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = r.Writer.Write(data)
		return nil
	}
}

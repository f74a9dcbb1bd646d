package httpapi

import (
	"sync"

	"nomadlike/agent/httpapi/front"
	"nomadlike/agent/openapi"
	"nomadlike/nomadlike/structs"
)

// readOpenAPI answers openapi with the document, which is written once.
func readOpenAPI() func(*front.Request, *structs.Token) (*front.Encoded[map[string]any], error) {
	document := sync.OnceValues(openapi.Document)
	return func(*front.Request, *structs.Token) (*front.Encoded[map[string]any], error) {
		data, err := document()
		if err != nil {
			return nil, err
		}
		return &front.Encoded[map[string]any]{Data: data}, nil
	}
}

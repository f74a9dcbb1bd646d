package openapi

import (
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"nomadlike/nomadlike/api"
)

// The document is valid, and lists the routes and nothing else. The router
// is built from the same table and panics on a route without a handler.
func TestOpenAPIIsValidAndComplete(t *testing.T) {
	data, err := Document()
	if err != nil {
		t.Fatal(err)
	}
	loader := openapi3.NewLoader()
	document, err := loader.LoadFromData(data)
	if err != nil {
		t.Fatal(err)
	}
	if err := document.Validate(loader.Context); err != nil {
		t.Fatal(err)
	}
	listed := 0
	for _, path := range document.Paths.Map() {
		listed += len(path.Operations())
	}
	routes := api.Routes()
	for _, route := range routes {
		operation := document.Paths.Find(route.Pattern).GetOperation(route.Method)
		if operation == nil || operation.OperationID != route.Name {
			t.Errorf("%s is not in the document", route.Name)
			continue
		}
		hasID := operation.Parameters.GetByInAndName("path", "id") != nil
		if hasID != strings.Contains(route.Pattern, "{id}") {
			t.Errorf("%s: path parameter", route.Name)
		}
	}
	if listed != len(routes) {
		t.Errorf("%d operations for %d routes", listed, len(routes))
	}
}

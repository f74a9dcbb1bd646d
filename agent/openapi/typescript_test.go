package openapi

import (
	"path/filepath"
	"testing"

	"nomadlike/internal/golden"
)

// TestTypesOfThePages keeps the types that the web pages are written with equal
// to the document; -rewrite writes them anew.
func TestTypesOfThePages(t *testing.T) {
	document, err := Document()
	if err != nil {
		t.Fatal(err)
	}
	types, err := TypeScript(document)
	if err != nil {
		t.Fatal(err)
	}
	golden.Assert(t, filepath.Join("..", "..", "ui", "src", "types.ts"), types)
}

package openapi

import (
	"path/filepath"
	"testing"

	"nomadlike/internal/golden"
)

// TestClientForPython keeps what of the client for Python is made from the document
// equal to it; -rewrite writes it anew.
func TestClientForPython(t *testing.T) {
	document, err := Document()
	if err != nil {
		t.Fatal(err)
	}
	for name, write := range map[string]func([]byte) (string, error){"bodies.py": PythonBodies, "calls.py": PythonCalls} {
		text, err := write(document)
		if err != nil {
			t.Fatal(err)
		}
		golden.Assert(t, filepath.Join("..", "..", "scripts", "python", "nomadlike", name), text)
	}
}

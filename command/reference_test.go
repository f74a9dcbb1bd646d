package command

import (
	"path/filepath"
	"testing"

	"nomadlike/internal/golden"
	"nomadlike/internal/messages"
)

//go:generate go test -count=1 -run TestReference -rewrite .

// TestReference keeps website/reference/*/cli.md equal to the commands
// themselves; -rewrite writes the pages anew.
func TestReference(t *testing.T) {
	for _, language := range []messages.Language{messages.English, messages.Chinese} {
		golden.Assert(t, filepath.Join("..", "website", "reference", string(language), "cli.md"), reference(language))
	}
}

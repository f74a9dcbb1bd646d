package config

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"nomadlike/internal/messages"
)

// TestDocumentedConfig: the configuration that the guides show is read without a
// word that nobody knows.
func TestDocumentedConfig(t *testing.T) {
	fence := regexp.MustCompile("(?ms)^```hcl\n((?:server|client|ports|telemetry|web)\\b.*?)^```")
	for _, language := range []string{"en", "zh"} {
		files, err := filepath.Glob("../../website/guide/" + language + "/*.md")
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, match := range fence.FindAllSubmatch(text, -1) {
				seen++
				loader := newLoader(messages.English)
				loader.layer(name, match[1])
				for _, p := range loader.diagnostics {
					if p.Severity == hcl.DiagError {
						t.Errorf("%s: %s: %s\n%s", name, p.Summary, p.Detail, match[1])
					}
				}
			}
		}
		if seen < 5 {
			t.Errorf("%s: only %d examples of configuration", language, seen)
		}
	}
}

package agent

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"nomadlike/internal/messages"
)

// Every message id that the agent uses has a text in both languages.
func TestMessagesExist(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	id := regexp.MustCompile(`"(agent\.[a-z_.]+)"`)
	routes := map[string]bool{
		"agent.health": true, "agent.self": true, "agent.join": true, "agent.renew": true, "agent.lock": true, "agent.pem": true,
		"agent.refuse": true, "agent.hcl": true,
	} // the beginning of ids, and a file, in tests
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range id.FindAllStringSubmatch(string(source), -1) {
			for _, language := range []messages.Language{messages.English, messages.Chinese} {
				if !routes[match[1]] && !messages.Has(language, match[1]) {
					t.Errorf("%s: %s has no text in %s", file, match[1], language)
				}
			}
		}
	}
}

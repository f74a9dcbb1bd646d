package structs

import (
	"fmt"
	"strings"
	"testing"

	"nomadlike/internal/messages"
)

// An error within the words of another one is told in the reader's language, and
// never by its id.
func TestErrorsWithinErrors(t *testing.T) {
	inner := NewError(CodeUnavailable, "agent.no_leader")
	outer := NewError(CodeInvalid, "agent.refuse.joined", "address", "a:1", "reason", fmt.Errorf("ask: %w", inner))
	deep := NewError(CodeInvalid, "agent.refuse.joined", "address", "b:1", "reason", outer)
	if text := messages.Text(messages.Chinese, deep.ID, deep.Params); !strings.Contains(text, "a:1") || !strings.Contains(text, messages.Text(messages.Chinese, inner.ID, nil)) {
		t.Errorf("two deep: %s", text)
	}
	if text := messages.Textf(messages.English, "agent.refuse.joined", "address", "c:1", "reason", inner); strings.Contains(text, inner.ID) {
		t.Errorf("by Textf: %s", text)
	}
	for _, language := range []messages.Language{messages.English, messages.Chinese} {
		text := messages.Text(language, outer.ID, outer.Params)
		if strings.Contains(text, inner.ID) || !strings.Contains(text, messages.Text(language, inner.ID, nil)) {
			t.Errorf("in %s: %s", language, text)
		}
	}
	if plain := NewError(CodeInvalid, "agent.refuse.joined", "reason", fmt.Errorf("refused")); plain.Params["reason"] != "refused" || len(plain.Params) != 1 {
		t.Errorf("another error: %v", plain.Params)
	}
}

package config

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/hashicorp/hcl/v2/hclwrite"

	"nomadlike/internal/golden"
	"nomadlike/internal/messages"
)

// TestReferencePages keeps the pages of the website equal to the walk; -rewrite writes
// them anew.
func TestReferencePages(t *testing.T) {
	for _, language := range []messages.Language{messages.English, messages.Chinese} {
		page, err := Reference(language)
		if err != nil {
			t.Fatal(err)
		}
		golden.Assert(t, filepath.Join("..", "..", "website", "reference", string(language), "agent.md"), page)
	}
}

// TestSampleIsSound: the page shows no example that is refused, but for what cannot
// stand side by side.
func TestSampleIsSound(t *testing.T) {
	text, err := sample.ReadFile(sampleFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(hclwrite.Format(text)) != string(text) {
		t.Errorf("%s is not formatted", sampleFile)
	}
	l := newLoader(messages.English)
	_, problems := resolve(l.layer(sampleFile, text), paperMachine())
	sideBySide := []string{
		"agent.config.two_tokens", "agent.config.token_file", // one of the two says it
		"agent.config.ldap_how", // people are searched for, or sign in by their own names
		"agent.config.env_file", // there is no such file on the machine of the test
	}
	for _, problem := range problems {
		if !slices.Contains(sideBySide, problem.id) {
			t.Errorf("%s: %s %v", problem.path, problem.id, problem.args)
		}
	}
}

package jobspec

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"nomadlike/internal/golden"
	"nomadlike/internal/messages"
	"nomadlike/nomadlike/structs"
)

// TestReferencePages keeps the pages of the website equal to the walks, the
// defaults and the checks; -rewrite writes them anew.
func TestReferencePages(t *testing.T) {
	for _, language := range []messages.Language{messages.English, messages.Chinese} {
		for _, kind := range Kinds() {
			page, err := Reference(kind, language)
			if err != nil {
				t.Fatal(err)
			}
			golden.Assert(t, filepath.Join("..", "website", "reference", string(language), kind+"-file.md"), page)
		}
	}
}

// TestSamplesAreSound: the pages show no example that the checks refuse, but that
// arguments exclude each other or belong to other modes and drivers: one sample
// holds all of them side by side.
func TestSamplesAreSound(t *testing.T) {
	for _, n := range nouns() {
		text := read(t, "reference/"+n.kind+".hcl")
		if formatted, _ := Format(n.kind, text); string(formatted) != string(text) {
			t.Errorf("reference/%s.hcl is not formatted", n.kind)
		}
		of, p := n.empty(), newParser(Options{})
		p.read(n.kind, text, n, func(block *hclsyntax.Block) { p.top(n, block).read(of.walk) })
		of.defaults()
		for _, one := range describe(n, n.empty()) {
			if one.form == formArgument && !p.places.names(one.path) && one.path != "time_limit" && one.path != "workdir" { // a block says it
				t.Errorf("reference/%s.hcl has no %s", n.kind, one.path)
			}
		}
		sideBySide := append(refusalsOfKind(), "job.excludes", "job.mode_option", "job.batch.both", "job.batch.type", "job.device_ids",
			"job.named_too_few", "job.throttle_unsupported", "job.vip_machines", "job.sweep.type")
		for _, problem := range of.validate() {
			if slices.Contains(sideBySide, problem.ID) {
				continue
			}
			t.Errorf("%s: %s %s %v", n.kind, problem.Path, problem.ID, problem.Params)
		}
	}
}

// TestReferenceOfUnknownKinds: whoever asks for another page is told which there are.
func TestReferenceOfUnknownKinds(t *testing.T) {
	var refused *structs.Error
	if _, err := Reference("node", messages.English); !errors.As(err, &refused) || refused.Params["choices"] != "job, pool, project" {
		t.Errorf("the page about nodes: %v", err)
	}
}

// names reports whether the file holds a field, of whichever block of its type.
func (m *SourceMap) names(path string) bool {
	for at := range m.places {
		if withoutIndexes(at) == path {
			return true
		}
	}
	return false
}

package openapi

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"nomadlike/internal/golden"
	"nomadlike/internal/messages"
	"nomadlike/nomadlike/api"
)

//go:generate go test -count=1 -run TestReferenceTexts -rewrite .
//go:generate go test -count=1 -run TestReferencePages -rewrite .

// reference is the area of the catalogue of which the table of routes is the source.
const reference = "../../internal/messages/en/reference.json"

// TestReferenceTexts keeps the English texts of routes and parameters in the catalogue
// equal to the table of routes; -rewrite writes them anew. The Chinese ones are written
// by people, and the test of the catalogue misses one that is not there.
func TestReferenceTexts(t *testing.T) {
	data, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	texts := make(map[string]string)
	if err := json.Unmarshal(data, &texts); err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(texts, func(id, _ string) bool {
		return strings.HasPrefix(id, "reference.route.") || strings.HasPrefix(id, "reference.param.")
	})
	maps.Copy(texts, Texts())
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(texts); err != nil {
		t.Fatal(err)
	}
	golden.Assert(t, reference, out.String())
}

// TestTextsAreApart: no two meanings of a parameter share an id.
func TestTextsAreApart(t *testing.T) {
	said := make(map[string]string)
	for _, route := range api.Routes() {
		for _, param := range route.Query {
			id := paramText(param)
			if before, ok := said[id]; ok && before != param.Summary {
				t.Errorf("%s is %q and %q", id, before, param.Summary)
			}
			said[id] = param.Summary
		}
	}
}

// TestReferencePages keeps the pages about routes and bodies equal to the table of
// routes, to the types and to the permissions that the test of all roles found;
// -rewrite writes them anew.
func TestReferencePages(t *testing.T) {
	permissions, err := os.ReadFile("../testdata/permissions.golden")
	if err != nil {
		t.Fatal(err)
	}
	document, err := Document()
	if err != nil {
		t.Fatal(err)
	}
	for _, language := range []messages.Language{messages.English, messages.Chinese} {
		routes, err := Reference(language, string(permissions))
		if err != nil {
			t.Fatal(err)
		}
		types, err := Types(language, document)
		if err != nil {
			t.Fatal(err)
		}
		for name, page := range map[string]string{"api.md": routes, "types.md": types} {
			golden.Assert(t, filepath.Join("..", "..", "website", "reference", string(language), name), page)
		}
	}
}

// TestFieldsAreExplained: every field of every body has a text in both languages, and
// every text has its field. What is written of one type's field says something else
// than what is written of all of its name.
func TestFieldsAreExplained(t *testing.T) {
	document, err := Document()
	if err != nil {
		t.Fatal(err)
	}
	var read struct {
		Components struct {
			Schemas map[string]described `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(document, &read); err != nil {
		t.Fatal(err)
	}
	used, fields := make(map[string]bool), 0
	for name, schema := range read.Components.Schemas {
		for field := range schema.Properties {
			fields++
			used[name+"."+field], used[field] = true, true
			for _, language := range []messages.Language{messages.English, messages.Chinese} {
				if messages.Field(language, name, field) == "" {
					t.Errorf("%s.%s has no text in internal/messages/fields/%s.json", name, field, language)
				}
			}
		}
	}
	if fields < 1000 {
		t.Errorf("only %d fields were found", fields)
	}
	for _, id := range messages.FieldIDs() {
		at := strings.LastIndex(id, ".") // a type may have its package before it
		switch {
		case !used[id]:
			t.Errorf("no body has %s", id)
		case at > 0 && messages.Field(messages.English, id[:at], id[at+1:]) == messages.Field(messages.English, "", id[at+1:]):
			t.Errorf("%s says what %s says", id, id[at+1:])
		}
	}
}

// TestWhoMayCall compares some lines of the page with what the policy is meant to be.
func TestWhoMayCall(t *testing.T) {
	permissions, err := os.ReadFile("../testdata/permissions.golden")
	if err != nil {
		t.Fatal(err)
	}
	rights, err := readRights(string(permissions))
	if err != nil {
		t.Fatal(err)
	}
	routes := api.Routes()
	for name, want := range map[string]string{
		"jobs.stop":              "user (own); project-admin (all of its project); operator; admin",
		"jobs.submit":            "user (own project); project-admin (own project); admin",
		"nodes.drain":            "operator; admin",
		"operator.snapshot_save": "admin",
		"agent.health":           "everybody, without a token",
	} {
		at := slices.IndexFunc(routes, func(route api.Route) bool { return route.Name == name })
		got, err := callers(messages.English, routes[at], rights)
		if err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
	if _, err := callers(messages.English, api.Route{Name: "no.such"}, rights); err == nil {
		t.Error("a route without permissions is told about")
	}
}

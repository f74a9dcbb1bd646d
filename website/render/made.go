package render

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"nomadlike/internal/messages"
)

// examples is the page with all example job files.
func examples(source fs.FS, language messages.Language) (*page, error) {
	names, err := fs.Glob(source, "examples/*.hcl")
	if err != nil {
		return nil, fmt.Errorf("list examples: %w", err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n", messages.Text(language, "docs.examples", nil), messages.Text(language, "docs.examples_text", nil))
	for _, name := range names {
		text, err := fs.ReadFile(source, name)
		if err != nil {
			return nil, fmt.Errorf("read example: %w", err)
		}
		fmt.Fprintf(&b, "\n## %s\n\n```hcl\n%s\n```\n", path.Base(name), strings.TrimRight(string(text), "\n"))
	}
	return &page{language: language, name: "examples", file: "guide/" + string(language) + "/examples.md", source: []byte(b.String())}, nil
}

// hint is the end of the id of a text that says what to do about another one.
const hint = ".hint"

// errorMessages is the page with every message that has a hint: what was refused
// or went wrong, by the id that programs get, and what to do about it.
func errorMessages(language messages.Language) *page {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n", messages.Text(language, "docs.errors", nil), messages.Text(language, "docs.errors_text", nil))
	for _, id := range messages.IDs() {
		cure, ok := strings.CutSuffix(id, hint)
		if !ok || !messages.Has(language, cure) {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n%s\n", cure, quoted(wording(language, cure)), quoted(wording(language, id)))
	}
	return &page{
		language: language, name: "reference/errors", file: "reference/" + string(language) + "/errors.md", source: []byte(b.String()),
	}
}

// Braces in messages: a word that goes with a number, and a parameter that is put
// into the reader's language.
var (
	counted = regexp.MustCompile(`\{\w+\|[^|}]*\|([^}]*)\}`)
	worded  = regexp.MustCompile(`\{([\w.]+):words?\}`)
)

// wording is a message with its parameters by name.
func wording(language messages.Language, id string) string {
	text := counted.ReplaceAllString(messages.Text(language, id, nil), "$1")
	return worded.ReplaceAllString(text, "{$1}")
}

// quoted keeps Markdown from reading marks in a message.
func quoted(text string) string {
	var b strings.Builder
	for _, r := range text {
		if strings.ContainsRune("\\`*_{}[]<>#|~!", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// designIndex lists the decisions, the newest first.
func designIndex(pages []*page) *page {
	var names []string
	titles := make(map[string]string)
	for _, p := range pages {
		if strings.HasPrefix(p.name, "design/") {
			names = append(names, p.file)
			first, _, _ := strings.Cut(string(p.source), "\n")
			titles[p.file] = strings.TrimPrefix(first, "# ")
		}
	}
	slices.Sort(names)
	slices.Reverse(names)
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", messages.Text(messages.English, "docs.design", nil))
	for _, file := range names {
		fmt.Fprintf(&b, "- [%s](%s)\n", titles[file], path.Base(file))
	}
	return &page{language: messages.English, name: "design/index", file: "design/index.md", source: []byte(b.String())}
}

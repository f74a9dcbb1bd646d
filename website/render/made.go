package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/structs"
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

// codesFile lists the code of each error by its id, as the sources give it.
const codesFile = "reference/errors.json"

// errorMessages is the page with every message that has a hint: what was refused
// or went wrong, by the id that programs get, its code, and what to do about it.
func errorMessages(source fs.FS, language messages.Language) (*page, error) {
	codes := make(map[string]structs.ErrorCode)
	data, err := fs.ReadFile(source, codesFile)
	switch {
	case errors.Is(err, fs.ErrNotExist): // a source without one, as in tests
	case err != nil:
		return nil, fmt.Errorf("read codes of errors: %w", err)
	default:
		if err := json.Unmarshal(data, &codes); err != nil {
			return nil, fmt.Errorf("decode %s: %w", codesFile, err)
		}
	}
	say := func(id string) string { return messages.Text(language, "reference.errors."+id, nil) }
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n", messages.Text(language, "docs.errors", nil), messages.Text(language, "docs.errors_text", nil))
	fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| %s | %s | %s | %s |\n|---|---|---|---|\n", say("codes"), say("codes_text"), say("code"), say("status"), say("meaning"), say("again"))
	for _, code := range structs.ErrorCodes() {
		fmt.Fprintf(&b, "| `%s` | %d | %s | %s |\n", code, code.HTTPStatus(), say("code_"+string(code)), say("again_"+string(code)))
	}
	for _, id := range messages.IDs() {
		cure, ok := strings.CutSuffix(id, hint)
		if !ok || !messages.Has(language, cure) {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n", cure)
		if code := codes[cure]; code != "" {
			fmt.Fprintf(&b, "`%s` %d\n\n", code, code.HTTPStatus())
		}
		fmt.Fprintf(&b, "%s\n\n%s\n", quoted(wording(language, cure)), quoted(wording(language, id)))
	}
	return &page{
		language: language, name: "reference/errors", file: "reference/" + string(language) + "/errors.md", source: []byte(b.String()),
	}, nil
}

// eventTopics are the topics of events in the order of the page, each with the word
// that stands behind "event." in the ids of its texts.
var eventTopics = []struct {
	topic string
	words []string
}{
	{"job", []string{"job"}},
	{"attempt", []string{"attempt"}},
	{"alloc", []string{"alloc"}},
	{"node", []string{"node"}},
	{"pool", []string{"pool"}},
	{"project", []string{"project"}},
	{"token", []string{"token", "join_token"}},
	{"cluster", []string{"cluster"}},
}

// eventLine is an event as a program gets it.
const eventLine = `{"index":8,"seq":0,"time":"2026-11-26T11:28:48.873556788Z","topic":"job","id":"event.job.starting",
 "params":{"attempt":"1","job":"train","nodes":"2"},"by":"afd2451d","project":"vision","job_id":"8fb360a2","attempt":1,"cursor":"8.1"}
`

// events is the page with everything that happens in a cluster, by topic and by the
// id that programs get.
func events(language messages.Language) *page {
	say := func(id string) string { return messages.Text(language, "reference.events."+id, nil) }
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n\n```json\n%s\n```\n", say("title"), say("intro"), eventLine)
	fmt.Fprintf(&b, "\n| %s | %s |\n|---|---|\n", say("field"), say("meaning"))
	for _, field := range []string{"cursor", "index", "time", "topic", "id", "params", "by", "project", "severity", "cause"} {
		fmt.Fprintf(&b, "| `%s` | %s |\n", field, say("field_"+field))
	}
	for _, one := range eventTopics {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| id | %s |\n|---|---|\n", one.topic, say("topic_"+one.topic), say("text"))
		for _, id := range messages.IDs() {
			for _, word := range one.words {
				if strings.HasPrefix(id, "event."+word+".") {
					fmt.Fprintf(&b, "| `%s` | %s |\n", id, quoted(wording(language, id)))
				}
			}
		}
	}
	return &page{
		language: language, name: "reference/events", file: "reference/" + string(language) + "/events.md", source: []byte(b.String()),
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

// Package messages is the catalogue of every text that a person reads: what
// the CLI prints, why a request was refused, what an event says. Texts are
// named by stable ids; servers send ids with parameters, and whoever shows
// them renders Chinese or English.
//
// Flow: one flat JSON file per language and area under en/ and zh/, embedded, one
// text a line; a language is indexed at first use. A template names its parameters in braces: {name}.
//
// A word that goes with a number is chosen by it: {count|job|jobs} is "job" when
// the parameter count is 1, and "jobs" otherwise.
//
// Limits: two forms of a word, which is what English has and more than Chinese
// needs; no formatting of numbers.
package messages

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"
)

// Language is a language of the catalogue.
type Language string

// The languages of the catalogue.
const (
	English Language = "en"
	Chinese Language = "zh"
)

//go:embed en/*.json zh/*.json
var files embed.FS

// texts are those of one language, by id, each as it stands in its file: quoted. A
// command needs a dozen of some thousands, so they are unquoted when they are read.
type texts map[string]string

// english and chinese are indexed at first use: a command needs one of them.
var (
	english = sync.OnceValue(func() texts { return mustIndex(English) })
	chinese = sync.OnceValue(func() texts { return mustIndex(Chinese) })
)

// in returns the texts of a language, none for one that is not known.
func in(language Language) texts {
	switch language {
	case English:
		return english()
	case Chinese:
		return chinese()
	default:
		return nil
	}
}

func mustIndex(language Language) texts {
	index, err := index(language)
	if err != nil {
		panic(err.Error()) // embedded files are part of the build; the tests index them all
	}
	return index
}

// index finds every text of one language; an id may stand in one area only. A file
// holds one text a line, so finding them is cheaper than parsing JSON: most of what
// a short command used to do. A test holds both to the same answer.
func index(language Language) (texts, error) {
	entries, err := files.ReadDir(string(language))
	if err != nil {
		return nil, fmt.Errorf("read catalogue %s: %w", language, err)
	}
	found := make(texts, textsExpected)
	for _, entry := range entries {
		name := path.Join(string(language), entry.Name())
		data, err := files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read catalogue: %w", err)
		}
		for rest, line := string(data), ""; rest != ""; {
			line, rest, _ = strings.Cut(rest, "\n")
			if line == "{" || line == "}" || line == "" {
				continue
			}
			id, text, ok := strings.Cut(line, `": "`)
			id, opened := strings.CutPrefix(id, `  "`)
			text, closed := strings.CutSuffix(strings.TrimSuffix(text, ","), `"`)
			if !ok || !opened || !closed {
				return nil, fmt.Errorf("index catalogue %s: %q is not one text on a line of its own", name, line)
			}
			if _, taken := found[id]; taken {
				return nil, fmt.Errorf("index catalogue %s: id %s stands in another area too", name, id)
			}
			found[id] = text
		}
	}
	return found, nil
}

// textsExpected is room for the texts of a language, so that the index is laid out once.
const textsExpected = 6144

// text returns the text of id, and whether there is one.
func (t texts) text(id string) (string, bool) {
	quoted, ok := t[id]
	if !ok || strings.IndexByte(quoted, '\\') < 0 {
		return quoted, ok
	}
	var text string
	if err := json.Unmarshal([]byte(`"`+quoted+`"`), &text); err != nil {
		return quoted, true // a defect of the file, which the tests find
	}
	return text, true
}

// Has reports whether the catalogue knows id in language.
func Has(language Language, id string) bool {
	_, ok := in(language)[id]
	return ok
}

// IDs lists the ids of all messages, sorted. Callers own the slice.
func IDs() []string { return slices.Sorted(maps.Keys(english())) }

// Text renders the message id in language with params. An unknown id falls
// back to English, then to the id with its parameters: a reader always sees
// something true. A parameter that is a sentence in English may have a twin in
// Chinese under its name with _zh, which Chinese texts take. Any goroutine may
// call it.
func Text(language Language, id string, params map[string]string) string {
	text, ok := in(language).text(id)
	if !ok {
		text, ok = english().text(id)
	}
	if !ok {
		return unknown(id, params)
	}
	if language == Chinese {
		params = chosen(params)
	}
	return fill(language, text, told(language, params))
}

// inner is the end of the name of a parameter that holds the id of the text of
// another one, which came from an error; the parameters of that text have its
// name and a dot before theirs.
const inner = "_id"

// told puts texts in the place of parameters that are errors with a text of
// their own.
func told(language Language, params map[string]string) map[string]string {
	var own map[string]string
	for name, id := range params {
		plain, ok := strings.CutSuffix(name, inner)
		if !ok || !Has(English, id) {
			continue
		}
		if _, ok := params[plain]; !ok {
			continue
		}
		of := make(map[string]string)
		for key, value := range params {
			if key, ok := strings.CutPrefix(key, plain+"."); ok {
				of[key] = value
			}
		}
		if own == nil {
			own = maps.Clone(params)
		}
		own[plain] = Text(language, id, of)
	}
	if own == nil {
		return params
	}
	return own
}

// chosen puts Chinese twins in the place of parameters that have one.
func chosen(params map[string]string) map[string]string {
	const twin = "_zh"
	var own map[string]string
	for name, value := range params {
		if plain, ok := strings.CutSuffix(name, twin); ok {
			if own == nil {
				own = maps.Clone(params)
			}
			own[plain] = value
		}
	}
	if own == nil {
		return params
	}
	return own
}

// Textf is Text with params as pairs of name and value, formatted with %v.
func Textf(language Language, id string, pairs ...any) string {
	params := make(map[string]string, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		name := fmt.Sprint(pairs[i])
		params[name] = fmt.Sprint(pairs[i+1])
		err, ok := pairs[i+1].(error)
		var failure interface {
			Told() (id string, params map[string]string)
		}
		if ok && errors.As(err, &failure) {
			id, of := failure.Told()
			params[name+inner] = id
			for key, value := range of {
				params[name+"."+key] = value
			}
		}
	}
	return Text(language, id, params)
}

// Detect chooses the language from the values of LC_ALL, LC_MESSAGES and
// LANG, in that order; the first that is set decides.
func Detect(lcAll, lcMessages, lang string) Language {
	for _, value := range []string{lcAll, lcMessages, lang} {
		if value == "" {
			continue
		}
		if strings.HasPrefix(strings.ToLower(value), "zh") {
			return Chinese
		}
		return English
	}
	return English
}

// fill puts params into the braces of text. Values are put in as they are,
// once: braces inside a value are not looked at again.
func fill(language Language, text string, params map[string]string) string {
	if !strings.Contains(text, "{") {
		return text
	}
	var b strings.Builder
	for {
		open := strings.IndexByte(text, '{')
		if open < 0 {
			break
		}
		end := strings.IndexByte(text[open:], '}')
		if end < 0 {
			break
		}
		name := text[open+1 : open+end]
		b.WriteString(text[:open])
		if value, ok := valueOf(language, name, params); ok {
			b.WriteString(value)
		} else {
			b.WriteString(text[open : open+end+1])
		}
		text = text[open+end+1:]
	}
	b.WriteString(text)
	return b.String()
}

// asWord is the end of a name in braces whose parameter is a word of ours, like
// the kind of an object: readers get it in their language.
const asWord = ":word"

// asWords is the same for a list of them, each with something behind it:
// "driver exec, disk".
const asWords = ":words"

// words puts the words of a list into a language.
func words(language Language, list string) string {
	texts := in(language)
	items := strings.Split(list, ", ")
	for i, item := range items {
		parts := strings.Split(item, " | ")
		for n, part := range parts {
			name, rest, more := strings.Cut(part, " ")
			if word, ok := texts.text("word." + name); ok {
				name = word
			}
			if more {
				name += " " + rest
			}
			parts[n] = name
		}
		items[i] = strings.Join(parts, " | ")
	}
	and, _ := texts.text("word.and")
	return strings.Join(items, and)
}

// valueOf is what stands in the place of a pair of braces: a parameter, the word
// for it, or the form of a word that goes with one.
func valueOf(language Language, name string, params map[string]string) (string, bool) {
	if plain, ok := strings.CutSuffix(name, asWord); ok {
		value, known := params[plain]
		if word, ok := in(language).text("word." + value); ok {
			value = word
		}
		return value, known
	}
	if plain, ok := strings.CutSuffix(name, asWords); ok {
		value, known := params[plain]
		return words(language, value), known
	}
	name, forms, counts := strings.Cut(name, "|")
	value, ok := params[name]
	if !ok || !counts {
		return spanText(value), ok
	}
	one, many, _ := strings.Cut(forms, "|")
	if value == "1" {
		return one, true
	}
	return many, true
}

// span is a length of time as programs write it: "2h42m43.713342491s", "1h0m0s".
var span = regexp.MustCompile(`^(\d+h)?(\d+m)?\d+(\.\d+)?(ms|µs|ns|s)$`)

// spanText writes a length of time as people read it: to the second where it is
// minutes, to three places where it is less, and without the parts that are zero.
// Everything else stays as it is.
func spanText(value string) string {
	if !span.MatchString(value) {
		return value
	}
	d, err := time.ParseDuration(value)
	if err != nil {
		return value
	}
	switch {
	case d >= time.Minute:
		d = d.Round(time.Second)
	case d >= time.Second:
		d = d.Round(time.Millisecond)
	case d >= time.Millisecond:
		d = d.Round(time.Microsecond)
	}
	text := d.String()
	if short, found := strings.CutSuffix(text, "m0s"); found {
		text = short + "m"
	}
	if short, found := strings.CutSuffix(text, "h0m"); found {
		text = short + "h"
	}
	return text
}

func unknown(id string, params map[string]string) string {
	names := make([]string, 0, len(params))
	for name := range params {
		names = append(names, name)
	}
	sort.Strings(names)
	var b strings.Builder
	b.WriteString(id)
	for _, name := range names {
		fmt.Fprintf(&b, " %s=%s", name, params[name])
	}
	return b.String()
}

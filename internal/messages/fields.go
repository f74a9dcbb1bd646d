package messages

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Texts of fields lie apart from the catalogue: only the reference and the OpenAPI
// document read them, and every command would pay for parsing them.
//
//go:embed fields/en.json fields/zh.json
var fieldFiles embed.FS

var fields = sync.OnceValue(func() map[Language]map[string]string {
	all := make(map[Language]map[string]string)
	for _, language := range []Language{English, Chinese} {
		texts, err := loadFields(language)
		if err != nil {
			panic(err.Error()) // embedded files are part of the build; the tests parse them
		}
		all[language] = texts
	}
	return all
})

func loadFields(language Language) (map[string]string, error) {
	name := "fields/" + string(language) + ".json"
	data, err := fieldFiles.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read texts of fields: %w", err)
	}
	var texts map[string]string
	if err := json.Unmarshal(data, &texts); err != nil {
		return nil, fmt.Errorf("parse %s: %w", name, err)
	}
	return texts, nil
}

// Field returns what a field of a body of the API means, "" when nothing is written
// of it. of is the type's name in the OpenAPI document. What is written of the field
// of that type ("Job.id") comes before what is written of all fields of the name
// ("job_id"). Any goroutine may call it.
func Field(language Language, of, field string) string {
	texts := fields()[language]
	if text, ok := texts[of+"."+field]; ok {
		return text
	}
	return texts[field]
}

// FieldIDs lists what texts of fields there are, sorted. Callers own the slice.
func FieldIDs() []string { return slices.Sorted(maps.Keys(fields()[English])) }

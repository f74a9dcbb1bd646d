package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// described is what other languages need to know of a schema.
type described struct {
	Description string `json:"description"`

	Ref        string               `json:"$ref"`
	AllOf      []described          `json:"allOf"` // one, with a description beside it
	Type       string               `json:"type"`
	Format     string               `json:"format"`
	Nullable   bool                 `json:"nullable"`
	Enum       []string             `json:"enum"`
	Items      *described           `json:"items"`
	Values     *described           `json:"additionalProperties"`
	Properties map[string]described `json:"properties"`
	Required   []string             `json:"required"`
}

// TypeScript writes the types of an OpenAPI document's schemas, and for each
// choice of words the list of them. It knows the schemas that Document makes,
// not all that OpenAPI could say.
func TypeScript(document []byte) (string, error) {
	var read struct {
		Components struct {
			Schemas map[string]described `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(document, &read); err != nil {
		return "", fmt.Errorf("read OpenAPI document: %w", err)
	}
	var out strings.Builder
	out.WriteString("// The bodies of the API, written by `make generate` from the OpenAPI document: change the Go types, not\n" +
		"// this file. Times are RFC 3339 text or null, spans text such as \"1h30m\".\n")
	schemas := read.Components.Schemas
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		schema := schemas[name]
		if schema.Enum != nil {
			fmt.Fprintf(&out, "\nexport type %s = %s\n", typeName(name), strings.Join(quoted(schema.Enum), " | "))
			fmt.Fprintf(&out, "export const %s: %s[] = [%s]\n", listName(name), typeName(name), strings.Join(quoted(schema.Enum), ", "))
			continue
		}
		fmt.Fprintf(&out, "\nexport interface %s {\n", typeName(name))
		for _, field := range slices.Sorted(maps.Keys(schema.Properties)) {
			mark := "?"
			if slices.Contains(schema.Required, field) {
				mark = ""
			}
			of := schema.Properties[field]
			fmt.Fprintf(&out, "  %s%s: %s\n", field, mark, of.typeScript())
		}
		out.WriteString("}\n")
	}
	return out.String(), nil
}

// typeScript is the type as TypeScript writes it.
func (d described) typeScript() string {
	if len(d.AllOf) == 1 {
		return d.AllOf[0].typeScript()
	}
	if d.Nullable {
		d.Nullable = false
		return d.typeScript() + " | null"
	}
	if d.Ref != "" {
		return typeName(strings.TrimPrefix(d.Ref, "#/components/schemas/"))
	}
	switch d.Type {
	case "array":
		of := d.Items.typeScript()
		if strings.Contains(of, " ") {
			of = "(" + of + ")"
		}
		return of + "[]"
	case "object":
		return "Record<string, " + d.Values.typeScript() + ">"
	case "integer":
		return "number"
	case "":
		return "unknown"
	}
	return d.Type // string, number and boolean are called the same
}

// typeName drops the dot between a package and a type whose name two packages
// have.
func typeName(schema string) string {
	from, name, two := strings.Cut(schema, ".")
	if !two {
		return schema
	}
	return strings.ToUpper(from[:1]) + from[1:] + name
}

// listName is what the words of a type are called together.
func listName(schema string) string {
	name := typeName(schema)
	name = strings.ToLower(name[:1]) + name[1:]
	switch {
	case strings.HasSuffix(name, "y"):
		return strings.TrimSuffix(name, "y") + "ies"
	case strings.HasSuffix(name, "s"):
		return name + "es"
	}
	return name + "s"
}

func quoted(words []string) []string {
	out := make([]string, len(words))
	for i, word := range words {
		out[i] = "'" + word + "'"
	}
	return out
}

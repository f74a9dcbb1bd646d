package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// calledOperation is what a client needs to know of an operation.
type calledOperation struct {
	ID         string `json:"operationId"`
	Summary    string `json:"summary"`
	Question   bool   `json:"x-question"`
	Parameters []struct {
		Name        string    `json:"name"`
		In          string    `json:"in"`
		Description string    `json:"description"`
		Schema      described `json:"schema"`
	} `json:"parameters"`
	Body      *calledBody           `json:"requestBody"`
	Responses map[string]calledBody `json:"responses"`
}

type calledBody struct {
	Content map[string]struct {
		Schema described `json:"schema"`
	} `json:"content"`
}

// readDocument is what of a document both files for Python are made of.
type readDocument struct {
	Paths      map[string]map[string]calledOperation `json:"paths"`
	Components struct {
		Schemas map[string]described `json:"schemas"`
	} `json:"components"`
}

// pythonWords are those that cannot name a parameter or a field in Python.
var pythonWords = strings.Fields("False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield")

// PythonBodies writes the schemas of an OpenAPI document as types of Python 3.8 and
// later, which are dicts when the program runs: what a newer server says besides is
// there too, and what is not set is not sent. What only answers hold has its required
// fields; of what requests hold, every field may be missing.
func PythonBodies(document []byte) (string, error) {
	var read readDocument
	if err := json.Unmarshal(document, &read); err != nil {
		return "", fmt.Errorf("read OpenAPI document: %w", err)
	}
	var out strings.Builder
	out.WriteString(`"""The bodies of the API, written by ` + "`make generate`" + ` from the OpenAPI document: change the Go types, not this file.

They are dicts. Times are RFC 3339 text or None, spans text such as "1h30m". Servers that are newer say more.
"""

from __future__ import annotations

from typing import Any, Dict, List, Literal, Optional, TypedDict
`)
	schemas := read.Components.Schemas
	sent := read.sent()
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		schema := schemas[name]
		if schema.Enum != nil {
			fmt.Fprintf(&out, "\n%s = Literal[%s]\n", typeName(name), strings.Join(quoted(schema.Enum), ", "))
			continue
		}
		fields := slices.Sorted(maps.Keys(schema.Properties))
		required := make([]string, 0, len(fields))
		for _, field := range fields {
			if slices.Contains(schema.Required, field) && !sent[name] {
				required = append(required, field)
			}
		}
		base := "TypedDict"
		if len(required) > 0 && len(required) < len(fields) {
			schema.writePython(&out, "_"+typeName(name), base, required, true)
			base = "_" + typeName(name)
			fields = slices.DeleteFunc(fields, func(field string) bool { return slices.Contains(required, field) })
		}
		schema.writePython(&out, typeName(name), base, fields, len(required) > 0 && base == "TypedDict")
	}
	return out.String(), nil
}

// writePython writes a class with some of the fields of a schema. What Python keeps for
// itself can name a field in the other notation only, which cannot say what it is based on.
func (d described) writePython(out *strings.Builder, name, base string, fields []string, total bool) {
	word := slices.ContainsFunc(fields, func(field string) bool { return slices.Contains(pythonWords, field) })
	if word {
		made := name
		if base != "TypedDict" {
			made = "_" + name + "Besides"
		}
		fmt.Fprintf(out, "\n%s = TypedDict(\n    %q,\n    {\n", made, made)
		for _, field := range fields {
			of := d.Properties[field]
			fmt.Fprintf(out, "        %q: %q,%s\n", field, of.python(""), of.comment())
		}
		fmt.Fprintf(out, "    },\n    total=%s,\n)\n", title(total))
		if made != name {
			fmt.Fprintf(out, "\n\nclass %s(%s, %s):\n    pass\n", name, base, made)
		}
		return
	}
	if !total {
		base += ", total=False"
	}
	fmt.Fprintf(out, "\n\nclass %s(%s):\n", name, base)
	for _, field := range fields {
		of := d.Properties[field]
		fmt.Fprintf(out, "    %s: %s%s\n", field, of.python(""), of.comment())
	}
	if len(fields) == 0 {
		out.WriteString("    pass\n")
	}
}

func title(yes bool) string {
	if yes {
		return "True"
	}
	return "False"
}

// comment is what a field means, at the end of its line.
func (d described) comment() string {
	if d.Description == "" {
		return ""
	}
	return "  # " + strings.Join(strings.Fields(d.Description), " ")
}

// python is the type as Python writes it; within is what stands before names of bodies.
func (d described) python(within string) string {
	if len(d.AllOf) == 1 {
		return d.AllOf[0].python(within)
	}
	if d.Nullable {
		d.Nullable = false
		return "Optional[" + d.python(within) + "]"
	}
	if d.Ref != "" {
		return within + typeName(strings.TrimPrefix(d.Ref, "#/components/schemas/"))
	}
	switch d.Type {
	case "array":
		return "List[" + d.Items.python(within) + "]"
	case "object":
		return "Dict[str, " + d.Values.python(within) + "]"
	case "integer":
		return "int"
	case "number":
		return "float"
	case "boolean":
		return "bool"
	case "":
		return "Any"
	}
	return "str"
}

// sent are the schemas that requests hold, at any depth.
func (r *readDocument) sent() map[string]bool {
	found := make(map[string]bool)
	var look func(described)
	look = func(d described) {
		if name := strings.TrimPrefix(d.Ref, "#/components/schemas/"); name != d.Ref && !found[name] {
			found[name] = true
			for _, field := range r.Components.Schemas[name].Properties {
				look(field)
			}
		}
		for _, part := range append(d.AllOf, deref(d.Items), deref(d.Values)) {
			if part.Ref != "" || part.Type != "" || len(part.AllOf) > 0 {
				look(part)
			}
		}
	}
	for _, methods := range r.Paths {
		for _, operation := range methods {
			if operation.Body != nil {
				for _, content := range operation.Body.Content {
					look(content.Schema)
				}
			}
		}
	}
	return found
}

func deref(d *described) described {
	if d == nil {
		return described{}
	}
	return *d
}

// PythonCalls writes a method for every operation that answers with a body: a class that
// nomadlike.Client is based on. Websockets, which the standard library does not speak, and
// what answers in headers alone are left out.
func PythonCalls(document []byte) (string, error) {
	var read readDocument
	if err := json.Unmarshal(document, &read); err != nil {
		return "", fmt.Errorf("read OpenAPI document: %w", err)
	}
	var out strings.Builder
	out.WriteString(`"""Every call of the API, written by ` + "`make generate`" + ` from the OpenAPI document: change the routes, not this file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, cast
from urllib.parse import quote

if TYPE_CHECKING:
    from . import bodies
    from .transport import Stream


class Calls:
    """One method for each operation, named for its operationId. Errors are nomadlike.Error."""

    def _call(self, method: str, path: str, query: Optional[Dict[str, Any]] = None, headers: Optional[Dict[str, Optional[str]]] = None, body: Any = None, safe: bool = False) -> Any:
        raise NotImplementedError

    def _stream(self, method: str, path: str, query: Optional[Dict[str, Any]] = None, body: Any = None, safe: bool = False) -> Stream:
        raise NotImplementedError

    def _lines(self, method: str, path: str, query: Optional[Dict[str, Any]] = None) -> Iterator[Any]:
        raise NotImplementedError
`)
	operations := make(map[string]string)
	for path, methods := range read.Paths {
		for method, operation := range methods {
			if text := operation.python(strings.ToUpper(method), path); text != "" {
				operations[operation.ID] = text
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(operations)) {
		out.WriteString(operations[id])
	}
	return out.String(), nil
}

// python is the operation as a method, "" of one without a body in its answer.
func (o calledOperation) python(method, path string) string {
	answer := o.Responses["200"]
	arguments, query, headers := []string{"self"}, []string{}, []string{}
	var means []string
	if strings.Contains(path, "{id}") {
		arguments = append(arguments, "id: str")
	}
	body := ""
	if o.Body != nil {
		kind := "bytes"
		if content, ok := o.Body.Content["application/json"]; ok {
			kind = content.Schema.python("bodies.")
		}
		arguments, body = append(arguments, "body: "+kind), ", body=body"
	}
	star := false
	for _, param := range o.Parameters {
		if param.In == "path" {
			continue
		}
		if !star {
			arguments, star = append(arguments, "*"), true
		}
		name := strings.ReplaceAll(strings.ToLower(param.Name), "-", "_")
		if slices.Contains(pythonWords, name) {
			name += "_"
		}
		arguments = append(arguments, fmt.Sprintf("%s: Optional[%s] = None", name, param.Schema.python("")))
		if param.In == "header" {
			headers = append(headers, fmt.Sprintf("%q: %s", param.Name, name))
		} else {
			query = append(query, fmt.Sprintf("%q: %s", param.Name, name))
		}
		if param.Description != "" {
			means = append(means, fmt.Sprintf("        %s: %s", name, strings.Join(strings.Fields(param.Description), " ")))
		}
	}
	passed := fmt.Sprintf("%q", method) + ", " + pythonPath(path)
	if len(query) > 0 {
		passed += ", query={" + strings.Join(query, ", ") + "}"
	}
	if len(headers) > 0 {
		passed += ", headers={" + strings.Join(headers, ", ") + "}"
	}
	passed += body
	if method == "GET" || o.Question {
		passed += ", safe=True"
	}
	kind, line := "", ""
	switch {
	case answer.has("application/json"):
		kind = answer.Content["application/json"].Schema.python("bodies.")
		line = fmt.Sprintf("return cast(%q, self._call(%s))", kind, passed)
	case answer.has("application/x-ndjson"):
		kind = "Iterator[" + answer.Content["application/x-ndjson"].Schema.python("bodies.") + "]"
		line = "return self._lines(" + strings.TrimSuffix(passed, ", safe=True") + ")"
	case len(answer.Content) > 0:
		kind, line = "Stream", "return self._stream("+passed+")"
	default:
		return ""
	}
	doc := fmt.Sprintf("        \"\"\"%s.", strings.TrimSuffix(o.Summary, "?"))
	if len(means) > 0 {
		doc += "\n\n" + strings.Join(means, "\n") + "\n        "
	}
	return fmt.Sprintf("\n    def %s(%s) -> %s:\n%s\"\"\"\n        %s\n",
		strings.ReplaceAll(o.ID, ".", "_"), strings.Join(arguments, ", "), kind, doc, line)
}

func (b calledBody) has(kind string) bool {
	_, ok := b.Content[kind]
	return ok
}

// pythonPath is the path with the id in it, no part of which is read as a path.
func pythonPath(path string) string {
	before, after, found := strings.Cut(path, "{id}")
	if !found {
		return fmt.Sprintf("%q", path)
	}
	text := fmt.Sprintf("%q + quote(id, safe=\"\")", before)
	if after != "" {
		text += fmt.Sprintf(" + %q", after)
	}
	return text
}

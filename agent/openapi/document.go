package openapi

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sort"
	"strings"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/audit"
	"nomadlike/nomadlike/history"
	"nomadlike/nomadlike/structs"
)

// node is a piece of an OpenAPI document; encoding/json sorts its keys, so
// the document is the same at every run.
type node map[string]any

// Document describes the table of routes as an OpenAPI 3.0 document. The
// schemas are read off the Go types, so there is nothing to keep in step.
// Every call returns the same bytes.
func Document() ([]byte, error) {
	b := &schemaBuilder{schemas: node{}, names: map[reflect.Type]string{}, words: words()}
	paths := node{}
	for _, route := range api.Routes() {
		path, ok := paths[route.Pattern].(node)
		if !ok {
			path = node{}
			paths[route.Pattern] = path
		}
		path[strings.ToLower(route.Method)] = b.operation(route)
	}
	errorRef := b.schema(reflect.TypeFor[structs.Error]())
	document := node{
		"openapi": "3.0.3",
		"info": node{
			"title":       "nomadlike",
			"version":     "1",
			"description": "Errors have a code to decide by, an id with params, and a message in the language of Accept-Language. Lists filter out what the caller may not see; a single object that the caller may not see is not found.",
			"license":     node{"name": "MPL-2.0"},
		},
		"paths": paths,
		"components": node{
			"schemas":         b.schemas,
			"responses":       node{"Error": node{"description": "The request was not done; the body tells why.", "content": jsonContent(errorRef)}},
			"securitySchemes": node{"token": node{"type": "http", "scheme": "bearer", "description": "An API token."}},
		},
		"security": []any{node{"token": []any{}}},
	}
	data, err := json.MarshalIndent(document, "", " ")
	if err != nil {
		return nil, fmt.Errorf("encode OpenAPI document: %w", err)
	}
	return append(data, '\n'), nil
}

func jsonContent(schema node) node { return node{"application/json": node{"schema": schema}} }

// means is the schema of a field with what it means. Beside a reference readers
// ignore everything else, so one is put into a list.
func (n node) means(text string) node {
	if text == "" {
		return n
	}
	if n["$ref"] != nil {
		return node{"allOf": []any{n}, "description": text}
	}
	if span, ok := n["description"].(string); ok {
		text += "; " + span
	}
	n["description"] = text
	return n
}

// schemaBuilder collects the schemas of named types.
type schemaBuilder struct {
	schemas node
	names   map[reflect.Type]string
	words   map[reflect.Type][]any
}

func (b *schemaBuilder) operation(route api.Route) node {
	answer := node{"description": route.Summary}
	status := "200"
	headers := node{}
	switch route.Stream {
	case api.StreamText:
		answer["content"] = node{"text/plain": node{"schema": node{"type": "string"}}}
	case api.StreamBinary:
		answer["content"] = node{"application/octet-stream": node{"schema": node{"type": "string", "format": "binary"}}}
	case api.StreamNDJSON:
		answer["content"] = node{"application/x-ndjson": node{"schema": b.schema(reflect.TypeOf(route.Response))}}
	case api.StreamWebsocket:
		status, answer["description"] = "101", "The connection is a websocket now."
	default:
		if route.Response != nil {
			answer["content"] = jsonContent(b.schema(reflect.TypeOf(route.Response)))
		}
	}
	if route.Blocking {
		headers[api.HeaderIndex] = node{"description": "The state's index that the answer was read at.", "schema": node{"type": "integer"}}
		answer["headers"] = headers
	}
	operation := node{
		"operationId": route.Name,
		"summary":     route.Summary,
		"tags":        []any{strings.SplitN(route.Name, ".", 2)[0]},
		"parameters":  parameters(route),
		"responses":   node{status: answer, "default": node{"$ref": "#/components/responses/Error"}},
		"x-verb":      string(route.Verb),
		"x-object":    string(route.Kind),
	}
	if route.Question {
		operation["x-question"] = true
	}
	if route.Verb == api.VerbHealth {
		operation["responses"].(node)["503"] = node{"description": "The agent cannot do its work.", "content": answer["content"]}
	}
	switch {
	case route.Upload:
		operation["requestBody"] = node{"required": true, "content": node{"application/octet-stream": node{"schema": node{"type": "string", "format": "binary"}}}}
	case route.Request != nil:
		operation["requestBody"] = node{"required": true, "content": jsonContent(b.schema(reflect.TypeOf(route.Request)))}
	}
	if route.Verb == api.VerbHealth || route.Verb == api.VerbLogin {
		operation["security"] = []any{}
	}
	return operation
}

func parameters(route api.Route) []any {
	list := []any{}
	if strings.Contains(route.Pattern, "{id}") {
		list = append(list, node{"name": "id", "in": "path", "required": true, "schema": node{"type": "string"}})
	}
	for _, param := range route.Query {
		list = append(list, node{"name": param.Name, "in": "query", "description": param.Summary, "schema": node{"type": param.Type}})
	}
	if route.Name == "jobs.submit" {
		list = append(list, node{"name": api.HeaderIdempotencyKey, "in": "header", "description": "Repeating a submission under the same key gives the first one's answer.", "schema": node{"type": "string"}})
	}
	return list
}

// schema describes a type, by reference when it has a name of its own.
func (b *schemaBuilder) schema(t reflect.Type) node {
	switch t {
	case reflect.TypeFor[structs.UnixNano]():
		return node{"type": "string", "format": "date-time", "nullable": true}
	case reflect.TypeFor[structs.Duration]():
		return node{"type": "string", "description": "a span of time, such as 1h30m"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		schema := b.schema(t.Elem())
		if schema["$ref"] == nil {
			schema["nullable"] = true
		}
		return schema
	case reflect.String:
		if t != reflect.TypeFor[string]() {
			return node{"$ref": "#/components/schemas/" + b.choice(t)}
		}
		return node{"type": "string"}
	case reflect.Bool:
		return node{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return node{"type": "number"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return node{"type": "integer"}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return node{"type": "string", "format": "byte", "nullable": true}
		}
		return node{"type": "array", "items": b.schema(t.Elem()), "nullable": true}
	case reflect.Map:
		return node{"type": "object", "additionalProperties": b.schema(t.Elem()), "nullable": true}
	case reflect.Struct:
		return node{"$ref": "#/components/schemas/" + b.name(t)}
	case reflect.Interface:
		return node{}
	}
	panic("agent: no JSON schema for " + t.String())
}

// name returns a struct's name in the document, and describes it at the first
// call. Types of two packages with one name get their package before it.
func (b *schemaBuilder) name(t reflect.Type) string {
	if name, ok := b.names[t]; ok {
		return name
	}
	name := ownName(t)
	if _, taken := b.schemas[name]; taken {
		path := strings.Split(t.PkgPath(), "/")
		name = path[len(path)-1] + "." + name
	}
	b.names[t] = name
	b.schemas[name] = node{} // the type may hold itself
	properties, required := node{}, []string{}
	b.fields(name, t, properties, &required)
	schema := node{"type": "object", "properties": properties}
	if len(required) > 0 {
		sort.Strings(required)
		schema["required"] = required
	}
	b.schemas[name] = schema
	return name
}

// choice returns the name of a type of which only some words are values.
func (b *schemaBuilder) choice(t reflect.Type) string {
	listed, ok := b.words[t]
	if !ok {
		panic("openapi: no words are listed for " + t.String())
	}
	b.schemas[ownName(t)] = node{"type": "string", "enum": listed}
	return ownName(t)
}

// ownName is a type's name where no package stands before it: those of the audit
// record and of reports are too common for that.
func ownName(t reflect.Type) string {
	if t.PkgPath() == reflect.TypeFor[audit.Record]().PkgPath() {
		return "Audit" + t.Name()
	}
	if t.PkgPath() == reflect.TypeFor[history.Use]().PkgPath() {
		return "Report" + t.Name()
	}
	return t.Name()
}

// fields lists what encoding/json writes of a struct, for the schema of a name. What
// is left out when it is empty is never null, and a pointer that is not left out is
// always set.
func (b *schemaBuilder) fields(of string, t reflect.Type, properties node, required *[]string) {
	for i := range t.NumField() {
		field := t.Field(i)
		tag, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && tag == "" {
			b.fields(of, field.Type, properties, required)
			continue
		}
		if !field.IsExported() || tag == "-" {
			continue
		}
		if tag == "" {
			tag = field.Name
		}
		schema := b.schema(field.Type)
		if strings.Contains(options, "omit") {
			delete(schema, "nullable")
		} else {
			*required = append(*required, tag)
		}
		properties[tag] = schema.means(messages.Field(messages.English, of, tag))
	}
}

package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/api"
)

// say is a text of the reference pages of the API.
func say(language messages.Language, id string, pairs ...any) string {
	return messages.Textf(language, "reference.api."+id, pairs...)
}

// Texts lists the English texts of routes and their parameters by the ids that they
// have in the catalogue. The table of routes has them in English, the catalogue in
// both languages; a test keeps the two equal.
func Texts() map[string]string {
	texts := make(map[string]string)
	for _, route := range api.Routes() {
		texts[routeText(route)] = route.Summary
		for _, param := range route.Query {
			texts[paramText(param)] = param.Summary
		}
	}
	return texts
}

func routeText(route api.Route) string { return "reference.route." + route.Name }

var notWord = regexp.MustCompile(`[^a-z0-9]+`)

// paramText names a parameter's text by its words: parameters of one name that mean
// the same share a text, and a text whose meaning changed is translated anew.
func paramText(param api.Param) string {
	words := strings.Split(strings.Trim(notWord.ReplaceAllString(strings.ToLower(param.Summary), "_"), "_"), "_")
	return "reference.param." + param.Name + "." + strings.Join(words[:min(len(words), 8)], "_")
}

// Reference is the page about the routes of the API. permissions is the table of who
// may call what as the test of all roles has found it: agent/testdata/permissions.golden.
func Reference(language messages.Language, permissions string) (string, error) {
	rights, err := readRights(permissions)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n", say(language, "title"), say(language, "intro"))
	for _, id := range []string{"tokens", "errors", "lists", "blocking", "streams"} {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", say(language, id), say(language, id+"_text"))
	}
	group := ""
	for _, route := range api.Routes() {
		tag, _, _ := strings.Cut(route.Name, ".")
		if tag != group {
			group = tag
			fmt.Fprintf(&b, "\n## %s\n", strings.ReplaceAll(tag, "_", " "))
		}
		if err := writeRoute(&b, language, route, rights); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

func writeRoute(b *strings.Builder, language messages.Language, route api.Route, rights map[string][]right) error {
	fmt.Fprintf(b, "\n### %s %s\n\n%s%s\n\n", route.Method, route.Pattern, messages.Text(language, routeText(route), nil), say(language, "stop"))
	who, err := callers(language, route, rights)
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "| | |\n|---|---|\n| %s | `%s` |\n| %s | %s |\n", say(language, "name"), route.Name, say(language, "who"), who)
	switch {
	case route.Upload:
		fmt.Fprintf(b, "| %s | %s |\n", say(language, "body"), say(language, "bytes"))
	case route.Request != nil:
		fmt.Fprintf(b, "| %s | %s |\n", say(language, "body"), typeLink(route.Request))
	}
	fmt.Fprintf(b, "| %s | %s |\n", say(language, "answer"), answer(language, route))
	if len(route.Query) == 0 {
		return nil
	}
	fmt.Fprintf(b, "\n| %s | %s | %s |\n|---|---|---|\n", say(language, "parameter"), say(language, "type"), say(language, "meaning"))
	for _, param := range route.Query {
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", param.Name, say(language, param.Type), messages.Text(language, paramText(param), nil))
	}
	return nil
}

func typeLink(value any) string {
	name := reflect.TypeOf(value).Name()
	if name == "" { // a document
		return "JSON"
	}
	return "[" + name + "](types.md#" + strings.ToLower(name) + ")"
}

func answer(language messages.Language, route api.Route) string {
	switch route.Stream {
	case api.StreamText:
		return say(language, "text")
	case api.StreamBinary:
		return say(language, "bytes")
	case api.StreamNDJSON:
		return say(language, "lines", "type", typeLink(route.Response))
	case api.StreamWebsocket:
		return say(language, "websocket")
	}
	if route.Response == nil {
		return say(language, "nothing")
	}
	return typeLink(route.Response)
}

// right is what one kind of object allows: the roles that may, by the names that the
// table gives them.
type right struct {
	object string
	roles  []string
}

// readRights reads the table of permissions: a line for each route and object, a
// column for each role.
func readRights(table string) (map[string][]right, error) {
	lines := strings.Split(strings.TrimSpace(table), "\n")
	head := strings.Fields(lines[0])
	if len(head) < 3 || head[0] != "route" {
		return nil, fmt.Errorf("the table of permissions begins with %q", lines[0])
	}
	at := strings.Index(lines[0], "object")
	rights := make(map[string][]right)
	for _, line := range lines[1:] {
		line += strings.Repeat(" ", max(0, len(lines[0])-len(line)))
		one := right{object: strings.TrimSpace(line[at : at+17])}
		for _, role := range head[2:] {
			from := strings.Index(lines[0], " "+role+" ") + 1
			if from == 0 {
				from = strings.LastIndex(lines[0], role)
			}
			if strings.HasPrefix(line[from:], "yes") {
				one.roles = append(one.roles, role)
			}
		}
		name := strings.TrimSpace(line[:at])
		rights[name] = append(rights[name], one)
	}
	return rights, nil
}

// callers says who may call a route, and for whose objects.
func callers(language messages.Language, route api.Route, rights map[string][]right) (string, error) {
	if route.Verb == api.VerbHealth || route.Name == api.LoginList.Route().Name {
		return say(language, "everybody"), nil
	}
	if route.Verb == api.VerbLogin {
		return say(language, "secret"), nil
	}
	rows, ok := rights[route.Name]
	if !ok {
		return "", fmt.Errorf("%s is not in the table of permissions: rewrite agent/testdata/permissions.golden first", route.Name)
	}
	var phrases []string
	for _, role := range []string{"viewer", "user", "project-admin", "operator", "admin", "guest", "board"} {
		var objects []string
		for _, row := range rows {
			if slices.Contains(row.roles, role) {
				objects = append(objects, row.object)
			}
		}
		switch {
		case len(objects) == 0:
		case len(objects) == len(rows):
			phrases = append(phrases, say(language, "role_"+role))
		default:
			slices.SortFunc(objects, func(a, b string) int { return strings.Compare(objectWord(b), objectWord(a)) })
			if slices.Equal(objects, []string{"own", "mate's", "closed"}) {
				objects = []string{"project"}
			}
			for i, object := range objects {
				objects[i] = say(language, "object_"+objectWord(object))
			}
			phrases = append(phrases, say(language, "limited", "role", say(language, "role_"+role), "objects", strings.Join(objects, say(language, "comma"))))
		}
	}
	if len(phrases) == 0 {
		return say(language, "nobody"), nil
	}
	return strings.Join(phrases, say(language, "semicolon")), nil
}

// objectWord is an object of the table as a part of an id.
func objectWord(object string) string {
	return strings.ReplaceAll(strings.ReplaceAll(object, "'s", ""), " ", "_")
}

// Types is the page about the bodies of the API.
func Types(language messages.Language, document []byte) (string, error) {
	var read struct {
		Components struct {
			Schemas map[string]described `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(document, &read); err != nil {
		return "", fmt.Errorf("read OpenAPI document: %w", err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n", say(language, "types"), say(language, "types_text"))
	schemas := read.Components.Schemas
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		schema := schemas[name]
		fmt.Fprintf(&b, "\n## %s\n\n", name)
		if schema.Enum != nil {
			words := make([]string, len(schema.Enum))
			for i, word := range schema.Enum {
				words[i] = "`" + word + "`"
				if word == "" {
					words[i] = say(language, "empty")
				}
			}
			fmt.Fprintf(&b, "%s\n", say(language, "one_of", "words", strings.Join(words, " ")))
			continue
		}
		if len(schema.Properties) == 0 {
			fmt.Fprintf(&b, "%s\n", say(language, "no_fields"))
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | | %s |\n|---|---|---|---|\n", say(language, "field"), say(language, "type"), say(language, "meaning"))
		for _, field := range slices.Sorted(maps.Keys(schema.Properties)) {
			of, note := schema.Properties[field], ""
			switch {
			case !slices.Contains(schema.Required, field):
				note = say(language, "optional")
			case of.Nullable:
				note = say(language, "nullable")
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", field, of.words(language), note, messages.Field(language, name, field))
		}
	}
	return b.String(), nil
}

// words is a type as people read it.
func (d described) words(language messages.Language) string {
	switch {
	case len(d.AllOf) == 1:
		return d.AllOf[0].words(language)
	case d.Ref != "":
		name := d.Ref[strings.LastIndex(d.Ref, "/")+1:]
		return "[" + name + "](#" + strings.ToLower(strings.ReplaceAll(name, ".", "")) + ")"
	case d.Format == "date-time":
		return say(language, "time")
	case d.Items != nil:
		return say(language, "list_of", "type", d.Items.words(language))
	case d.Values != nil:
		return say(language, "table_of", "type", d.Values.words(language))
	case d.Type == "":
		return say(language, "any")
	}
	return say(language, d.Type)
}

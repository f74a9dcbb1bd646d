package golden

import (
	"cmp"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// Shape lists the fields of types and of all that they hold, with their names on the
// wire: what changes in the list has changed what others read. A tag `since` is part
// of a field's line. lines are further ones. The list is sorted.
func Shape(lines []string, types ...reflect.Type) []string {
	all := make(map[string]bool)
	for _, line := range lines {
		all[line] = true
	}
	for _, t := range types {
		addShape(t, all)
	}
	var sorted []string
	for line := range all {
		sorted = append(sorted, line)
	}
	slices.Sort(sorted)
	return sorted
}

func addShape(t reflect.Type, lines map[string]bool) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		addShape(t.Elem(), lines)
	case reflect.Map:
		addShape(t.Key(), lines)
		addShape(t.Elem(), lines)
	case reflect.Struct:
		if lines["type "+t.String()] {
			return
		}
		lines["type "+t.String()] = true
		for i := range t.NumField() {
			field := t.Field(i)
			name, _, _ := strings.Cut(cmp.Or(field.Tag.Get("json"), field.Tag.Get("cbor")), ",")
			if !field.IsExported() && !field.Anonymous || name == "-" {
				continue
			}
			line := fmt.Sprintf("%s.%s %s", t, cmp.Or(name, field.Name), field.Type)
			if since := field.Tag.Get("since"); since != "" {
				line += " since " + since
			}
			lines[line] = true
			addShape(field.Type, lines)
		}
	}
}

// Changes lists what went and what came between two lists of Shape.
func Changes(before, after []string) []string {
	var lines []string
	for _, line := range before {
		if !slices.Contains(after, line) {
			lines = append(lines, "-"+line)
		}
	}
	for _, line := range after {
		if !slices.Contains(before, line) {
			lines = append(lines, "+"+line)
		}
	}
	return lines
}

// AssertShape fails t when the shape of what agents say to each other differs from the
// file at path while the version of the protocol is the same: -rewrite alone does not
// help.
func AssertShape(t testing.TB, path string, version int, lines []string) {
	t.Helper()
	got := fmt.Sprintf("protocol %d\n%s\n", version, strings.Join(lines, "\n"))
	data, err := os.ReadFile(path)
	if err == nil {
		known := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
		if known[0] == fmt.Sprintf("protocol %d", version) {
			if !slices.Equal(known[1:], lines) {
				t.Errorf("%s: the shape has changed: raise wire.ProtocolVersion with a line in wire/version.go, then run with -rewrite:\n%s",
					path, strings.Join(Changes(known[1:], lines), "\n"))
			}
			return
		}
	}
	Assert(t, path, got)
}

package state

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"nomadlike/internal/golden"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// shapeFile is the shape of everything that reaches the log or a stored state: a
// line for each field of each type, with the version that brought it.
const shapeFile = "testdata/shape.golden"

// addShape writes the lines of a type and of all that it holds.
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
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if !field.IsExported() && !field.Anonymous || name == "-" {
				continue
			}
			if name == "" {
				name = field.Name
			}
			line := fmt.Sprintf("%s.%s %s", t, name, field.Type)
			if since := field.Tag.Get("since"); since != "" {
				line += " since " + since
			}
			lines[line] = true
			addShape(field.Type, lines)
		}
	}
}

// shape gives the lines of today, sorted.
func shape() []string {
	lines := make(map[string]bool)
	addShape(reflect.TypeFor[structs.Command](), lines)
	addShape(reflect.TypeFor[structs.Event](), lines)
	addShape(reflect.TypeFor[structs.PastRun](), lines)
	addShape(reflect.TypeFor[dumpHeader](), lines)
	for _, d := range dumps() {
		if d.row != nil {
			addShape(reflect.TypeOf(d.row), lines)
		}
	}
	for kind := range structs.CommandKind(1 << 10) {
		read, known := judgeOf(kind)
		if !known {
			continue
		}
		lines[fmt.Sprintf("command %d", kind)] = true
		// What a reader decodes is asked of it: it hands a pointer to its decoder.
		_, _ = read(func(_ []byte, body any) error {
			lines[fmt.Sprintf("command %d is %T", kind, body)] = true
			addShape(reflect.TypeOf(body), lines)
			return os.ErrInvalid
		}, nil)
	}
	var sorted []string
	for line := range lines {
		sorted = append(sorted, line)
	}
	slices.Sort(sorted)
	return sorted
}

// Who changes what is stored raises wire.ProtocolVersion, with its line in the
// diary, and marks what is new: servers of the version before must not be sent
// it. -rewrite alone does not help.
func TestShapeOfWhatIsStored(t *testing.T) {
	lines := shape()
	diary, err := os.ReadFile("../wire/version.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(diary), fmt.Sprintf("\n//\t%d  20", wire.ProtocolVersion)) {
		t.Errorf("version %d has no line in the diary of wire/version.go", wire.ProtocolVersion)
	}
	got := fmt.Sprintf("protocol %d\n%s\n", wire.ProtocolVersion, strings.Join(lines, "\n"))
	data, err := os.ReadFile(shapeFile)
	if err != nil {
		golden.Assert(t, shapeFile, got)
		return
	}
	known := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	if known[0] == fmt.Sprintf("protocol %d", wire.ProtocolVersion) {
		if !slices.Equal(known[1:], lines) {
			t.Errorf("what is stored has changed: raise wire.ProtocolVersion with a line in wire/version.go, mark new fields with `since:\"%d\"`, then run with -rewrite:\n%s",
				wire.ProtocolVersion+1, strings.Join(changes(known[1:], lines), "\n"))
		}
		return
	}
	for _, line := range changes(known[1:], lines) {
		field := strings.HasPrefix(line, "+") && !strings.Contains(line, "+type ") && !strings.Contains(line, "+command ")
		owner, _, _ := strings.Cut(strings.TrimPrefix(line, "+"), " ")
		owner = owner[:max(0, strings.LastIndex(owner, "."))]
		isNewType := !slices.Contains(known, "type "+owner)
		if field && !isNewType && !strings.HasSuffix(line, fmt.Sprintf(" since %d", wire.ProtocolVersion)) {
			t.Errorf("%s: mark it with `since:\"%d\"`", line, wire.ProtocolVersion)
		}
	}
	golden.Assert(t, shapeFile, got)
}

// changes lists what went and what came.
func changes(before, after []string) []string {
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

// newer is a node as a version of tomorrow knows it, with a quarantine that this
// one would not see.
type newer struct {
	structs.Node
	Quarantine []string `json:"quarantine_of_tomorrow"`
}

// A field that this version does not know stops the replica before it applies
// the command; nobody proposes one; and a stored state with one is refused.
func TestUnknownFieldsStopTheReplica(t *testing.T) {
	body := struct {
		Node newer `json:"node"`
	}{newer{Node: structs.Node{ID: "n1", Name: "n1"}, Quarantine: []string{"GPU-1"}}}
	command, err := wire.EncodeCommand(structs.CommandNodeRegister, 1, "test", &body)
	if err != nil {
		t.Fatal(err)
	}
	if refusal := Check(command); refusal == nil || refusal.ID != "state.newer_command" || !strings.Contains(refusal.Params["fields"], "node.quarantine_of_tomorrow") {
		t.Errorf("a server would propose it: %+v", refusal)
	}
	store := New()
	func() {
		defer func() {
			stop, ok := recover().(*UnknownCommandError)
			if !ok || stop.Index != 7 || len(stop.Fields) != 1 || !strings.Contains(stop.Error(), "start that version") {
				t.Errorf("Apply stops with %v", stop)
			}
		}()
		store.Apply(7, command)
		t.Error("Apply took it")
	}()
	if store.Snapshot().Index() != 0 {
		t.Error("it was applied")
	}
	// Written by a version that did not say which: it is older, and what it wrote
	// may have gone since.
	decoded, err := wire.DecodeCommand(command)
	if err != nil {
		t.Fatal(err)
	}
	decoded.Protocol = 0
	old, err := wire.Marshal(decoded)
	if err != nil {
		t.Fatal(err)
	}
	if refusal := Check(old); refusal != nil {
		t.Errorf("an old command is refused: %+v", refusal)
	}

	for protocol, want := range map[int]bool{0: true, wire.ProtocolVersion: false, wire.ProtocolVersion + 1: false} {
		frames := &frameReader{unmarshal: wire.DecoderOf(protocol)}
		data, err := wire.Marshal(&body.Node)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range dumps() {
			if d.table != tableNodes {
				continue
			}
			_, err := d.read(frames.unmarshal, data)
			if (err == nil) != want {
				t.Errorf("a row of protocol %d: %v", protocol, err)
			}
		}
	}
}

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

// shape returns the lines of today, sorted.
func shape() []string {
	types := []reflect.Type{
		reflect.TypeFor[structs.Command](), reflect.TypeFor[structs.Event](), reflect.TypeFor[structs.PastRun](), reflect.TypeFor[dumpHeader](),
	}
	for _, d := range dumps() {
		if d.row != nil {
			types = append(types, reflect.TypeOf(d.row))
		}
	}
	var commands []string
	for kind := range structs.CommandKind(1 << 10) {
		read, known := judgeOf(kind)
		if !known {
			continue
		}
		commands = append(commands, fmt.Sprintf("command %d", kind))
		// What a reader decodes is asked of it: it hands a pointer to its decoder.
		_, _ = read(func(_ []byte, body any) error {
			commands = append(commands, fmt.Sprintf("command %d is %T", kind, body))
			types = append(types, reflect.TypeOf(body))
			return os.ErrInvalid
		}, nil)
	}
	return golden.Shape(commands, types...)
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
				wire.ProtocolVersion+1, strings.Join(golden.Changes(known[1:], lines), "\n"))
		}
		return
	}
	for _, line := range golden.Changes(known[1:], lines) {
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

package wire

import (
	"strings"
	"testing"

	"nomadlike/nomadlike/structs"
)

type inner struct {
	Old int            `json:"old,omitempty"`
	New []string       `json:"new,omitempty" since:"9"`
	By  map[string]*at `json:"by,omitempty"`
}

type at struct {
	When int    `json:"when,omitempty" since:"8"`
	Next *inner `json:"next,omitempty"`
}

func TestNeeds(t *testing.T) {
	cases := []struct {
		name string
		kind structs.CommandKind
		body any
		want int
	}{
		{"what every version knows", structs.CommandJobStop, &inner{Old: 1}, OldestProtocol},
		{"a kind", structs.CommandGuarded, &inner{}, ProtocolGuards},
		{"a field", structs.CommandJobStop, &inner{New: []string{""}}, 9},
		{"a field that is not set", structs.CommandJobStop, &inner{By: map[string]*at{"x": {}}}, OldestProtocol},
		{"a field below", structs.CommandJobStop, &inner{By: map[string]*at{"x": {When: 1}}}, 8},
		{"a type that holds itself", structs.CommandJobStop, []at{{Next: &inner{By: map[string]*at{"y": {Next: &inner{New: []string{"z"}}}}}}}, 9},
		{"nothing", structs.CommandJobStop, (*inner)(nil), OldestProtocol},
	}
	for _, c := range cases {
		for range 2 { // known and not
			if got := Needs(c.kind, c.body); got != c.want {
				t.Errorf("%s needs %d, want %d", c.name, got, c.want)
			}
		}
	}
}

func TestUnmarshalWhole(t *testing.T) {
	data, err := Marshal(map[string]any{"old": 1, "by": map[string]any{"x": map[string]any{"when": 2, "where": 3}}, "who": "?"})
	if err != nil {
		t.Fatal(err)
	}
	var got inner
	err = UnmarshalWhole(data, &got)
	if err == nil || !strings.Contains(err.Error(), `"by.where", "who"`) {
		t.Errorf("decoded with %v", err)
	}
	if err := Unmarshal(data, &got); err != nil || got.By["x"].When != 2 {
		t.Errorf("what agents say to each other is decoded as %+v, %v", got, err)
	}
}

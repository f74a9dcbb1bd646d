package service

import (
	"slices"
	"testing"

	"nomadlike/nomadlike/structs"
)

// TestTerminalsHaveAName: a command on a terminal knows which kind, its caller's or
// the usual one; another command has none.
func TestTerminalsHaveAName(t *testing.T) {
	for _, c := range []struct {
		start structs.ExecStart
		want  []string
	}{
		{structs.ExecStart{TTY: true}, []string{"TERM=xterm-256color"}},
		{structs.ExecStart{TTY: true, Env: map[string]string{"TERM": "screen"}}, []string{"TERM=screen"}},
		{structs.ExecStart{}, nil},
	} {
		if got := execSpec(&c.start).Env; !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.start, got, c.want)
		}
	}
}

package config

import (
	"flag"
	"reflect"
	"testing"
)

// TestFlags: a layer of flags says what was given, and nothing else.
func TestFlags(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want Settings
	}{
		"none": {nil, Settings{}},
		"one": {
			[]string{"-bootstrap-expect", "3"},
			Settings{Server: &ServerBlock{BootstrapExpect: new(3)}},
		},
		"zero values": {
			[]string{"-port", "0", "-client=false", "-name", ""},
			Settings{Name: new(""), Ports: &PortsBlock{HTTP: new(0)}, Client: &ClientBlock{Enabled: new(false)}},
		},
		"every kind": {
			[]string{"-dev", "-server-join", "a", "-server-join", "b", "-log-level", "warn", "-join-token-file", "/t", "-pool", "gpu"},
			Settings{
				Dev: new(true), JoinFile: new("/t"), Server: &ServerBlock{Join: []string{"a", "b"}},
				Log: &LogBlock{Level: new("warn")}, Client: &ClientBlock{Pool: new("gpu")},
			},
		},
	} {
		set := flag.NewFlagSet("agent", flag.ContinueOnError)
		layer := Flags(set)
		if err := set.Parse(c.args); err != nil {
			t.Fatal(err)
		}
		if got := layer(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

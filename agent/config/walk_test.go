package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"nomadlike/internal/messages"
)

// visitedFields remembers the fields that a walk visits, and makes every block.
type visitedFields struct {
	said, meant map[uintptr]bool
	fill        func(v *value)
}

func (f *visitedFields) rule(func(*resolver)) {}

func (f *visitedFields) label(to *string) {
	*to = "label"
	f.said[reflect.ValueOf(to).Pointer()] = true
}

func (f *visitedFields) setting(_ string, v *value) {
	f.said[reflect.ValueOf(v.said).Pointer()] = true
	if v.meant != nil {
		f.meant[reflect.ValueOf(v.meant).Pointer()] = true
	}
	if f.fill != nil {
		f.fill(v)
	}
}

func (f *visitedFields) block(b block) { b.walk(f, b.count) }

// leaves goes over the fields that hold values. A walk that visits a block has
// made it, so a block that is not there is a leaf that nobody visited.
func leaves(of reflect.Value, path string, leaf func(path string, field reflect.Value)) {
	for i := range of.NumField() {
		name := of.Type().Field(i).Name
		if name == "_" {
			continue
		}
		field, at := of.Field(i), below(path, name)
		inner := field
		if field.Kind() == reflect.Pointer && !field.IsNil() {
			inner = field.Elem()
		}
		if field.Kind() == reflect.Slice && field.Len() > 0 {
			inner = field.Index(0)
		}
		if inner.Kind() == reflect.Struct && inner.Type() != reflect.TypeFor[cty.Value]() {
			leaves(inner, at, leaf)
		} else {
			leaf(at, field)
		}
	}
}

// everything is a walk over settings in which all blocks stand.
func everything(fill func(*value)) (*Settings, *Config, *visitedFields) {
	s, c, visited := new(Settings), new(Config), &visitedFields{make(map[uintptr]bool), make(map[uintptr]bool), fill}
	walkSettings(visited, s, c)
	return s, c, visited
}

// TestWalksVisitEveryField fails for a field of the settings that no description
// visits: no file could say it, and no layer would keep it.
func TestWalksVisitEveryField(t *testing.T) {
	s, _, visited := everything(nil)
	fields := 0
	leaves(reflect.ValueOf(s).Elem(), "", func(path string, field reflect.Value) {
		fields++
		if !visited.said[field.Addr().Pointer()] {
			t.Errorf("no walk visits %s", path)
		}
	})
	if fields < 100 {
		t.Errorf("only %d fields were found", fields)
	}
}

// made are the fields of a Config that rules fill, with what they are made of.
func made() map[string]string {
	return map[string]string{
		"Client.Devices": "blocks device", "Client.Storages": "blocks storage", "Client.Remotes": "blocks storage",
		"Plugins": "blocks plugin", "Devices.Named": "blocks plugin", "Devices.Forced": "blocks plugin", "Devices.Off": "blocks plugin",
		"Server.SignIn.LDAP":   "blocks ldap",
		"Client.Exec.NoCgroup": "cgroups", "Client.Docker.ImageGC.Disabled": "image_gc.enabled",
		"Client.Docker.Program": "tests", "Client.Docker.ImageGC.Every": "tests", "Devices.Builtin": "tests", "Files": "the files that were read",
		"Server.SignIn.OIDC": "blocks oidc", "JoinToken": "join_token and join_token_file", "JoinFile": "join_token_file",
	}
}

// TestEveryPartIsToldSomewhere fails for a field of a Config that nothing fills.
func TestEveryPartIsToldSomewhere(t *testing.T) {
	_, c, visited := everything(nil)
	excused := made()
	of := reflect.ValueOf(c).Elem()
	leaves(of, "", func(path string, field reflect.Value) {
		for excuse := range excused {
			if path == excuse || strings.HasPrefix(path, excuse+".") {
				excused[excuse] = ""
				return
			}
		}
		if !strings.HasPrefix(path, "said.") && !visited.meant[field.Addr().Pointer()] {
			t.Errorf("no setting means %s", path)
		}
	})
	for path, unused := range excused {
		if unused != "" {
			t.Errorf("%s has an excuse and is no field", path)
		}
	}
}

// numbered sets each setting to a value of its own.
func numbered() func(*value) {
	n := 0
	return func(v *value) {
		n++
		word := fmt.Sprint("w", n)
		switch to := v.said.(type) {
		case *string:
			*to = word
		case **string:
			*to = &word
		case **int:
			*to = new(n)
		case **float64:
			*to = new(float64(n))
		case **bool:
			*to = new(n%2 == 0)
		case *[]string:
			*to = []string{word}
		case *map[string]string:
			*to = map[string]string{word: word}
		case *cty.Value:
			*to = cty.StringVal(word)
		default:
			panic(fmt.Sprintf("no value for a %T", to))
		}
	}
}

// TestLayers: a layer goes over another with everything that it says, and with nothing
// else.
func TestLayers(t *testing.T) {
	full, _, _ := everything(numbered())
	if merged := (Settings{}).Over(*full); !reflect.DeepEqual(merged, *full) {
		t.Errorf("a full layer over an empty one: %+v", merged)
	}
	if merged := full.Over(Settings{}); !reflect.DeepEqual(merged, *full) {
		t.Errorf("an empty layer over a full one: %+v", merged)
	}
}

// TestNobodySeesSecrets looks for what a secret setting says in what is shown.
func TestNobodySeesSecrets(t *testing.T) {
	const secret = "hush"
	s, c, _ := everything(func(v *value) {
		if !v.secret {
			return
		}
		switch to := v.said.(type) {
		case **string:
			*to = new(secret)
		case *map[string]string:
			*to = map[string]string{secret: secret}
		case *cty.Value:
			*to = cty.StringVal(secret)
		default:
			t.Errorf("no secret of a %T", to)
		}
	})
	c.said = *s
	c.JoinToken.Secret = secret
	if shown := fmt.Sprint(c.Redacted()); strings.Contains(shown, secret) || !strings.Contains(shown, "join_token:***") {
		t.Errorf("shown is %s", shown)
	}
}

// TestChanged names settings by their paths, and none that a running agent takes over.
func TestChanged(t *testing.T) {
	load := func(s Settings) Config {
		t.Helper()
		c, err := load(nil, s, messages.English, paperMachine())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	yes := true
	old := load(Settings{Dev: &yes})
	next := load(Settings{
		Dev: &yes, Log: &LogBlock{Level: new("debug"), Format: new("json")}, Server: &ServerBlock{KeepJobs: new(7), ForgetNodes: new("720h")},
		Client: &ClientBlock{Storages: []StorageBlock{{Name: "nas", Path: "/nas"}}},
	})
	want := []string{"client.storage[0]", "client.storage[0].path", "log.format", "server.keep_jobs"}
	if got := Changed(old, next); !slices.Equal(got, want) {
		t.Errorf("changed are %q", got)
	}
	if got := Changed(next, next); len(got) > 0 {
		t.Errorf("changed from itself: %q", got)
	}
}

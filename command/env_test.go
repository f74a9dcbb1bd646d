package command

import (
	"os"
	"slices"
	"testing"

	"github.com/creack/pty"

	"nomadlike/internal/messages"
)

func environment(values map[string]string) func(string) string {
	return func(name string) string { return values[name] }
}

func TestScreen(t *testing.T) {
	master, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	defer terminal.Close()
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cases := []struct {
		name             string
		file             *os.File
		env              map[string]string
		colour, terminal bool
	}{
		{"terminal", terminal, nil, true, true},
		{"NO_COLOR", terminal, map[string]string{"NO_COLOR": "1"}, false, true},
		{"dumb terminal", terminal, map[string]string{"TERM": "dumb"}, false, true},
		{"file", file, nil, false, false},
	}
	for _, c := range cases {
		s := screen(c.file, environment(c.env))
		if s.Colour != c.colour || s.Terminal != c.terminal {
			t.Errorf("%s: colour %t, terminal %t", c.name, s.Colour, s.Terminal)
		}
	}
}

func TestLanguage(t *testing.T) {
	cases := []struct {
		name string
		env  map[string]string
		want messages.Language
	}{
		{"nothing", nil, messages.English},
		{"LANG", map[string]string{"LANG": "zh_CN.UTF-8"}, messages.Chinese},
		{"LC_ALL wins", map[string]string{"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, messages.English},
		{"NOMADLIKE_LANG wins", map[string]string{"LC_ALL": "C", "NOMADLIKE_LANG": "zh"}, messages.Chinese},
	}
	for _, c := range cases {
		if got := language(environment(c.env)); got != c.want {
			t.Errorf("%s: %s", c.name, got)
		}
	}
}

func TestTakeLanguage(t *testing.T) {
	cases := []struct {
		args, left []string
		want       messages.Language
	}{
		{nil, nil, messages.English},
		{[]string{"-lang", "zh", "job"}, []string{"job"}, messages.Chinese},
		{[]string{"--lang=zh_CN"}, []string{}, messages.Chinese},
		{[]string{"-lang"}, []string{"-lang"}, messages.English},
		{[]string{"job", "-lang", "zh"}, []string{"job", "-lang", "zh"}, messages.English},
		{[]string{"-language=zh"}, []string{"-language=zh"}, messages.English},
	}
	for _, c := range cases {
		env, _, _ := paper()
		if got := env.takeLanguage(c.args); !slices.Equal(got, c.left) || env.Language != c.want {
			t.Errorf("%q: left %q, %s", c.args, got, env.Language)
		}
	}
}

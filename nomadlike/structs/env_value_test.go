package structs

import (
	"strings"
	"testing"
)

func TestExpandEnv(t *testing.T) {
	has := map[string]string{"PATH": "/bin:/usr/bin", "HOME": "/home/li", "EMPTY": ""}
	known := func(name string) (string, bool) { value, ok := has[name]; return value, ok }
	for _, test := range []struct{ value, want, unknown string }{
		{"/opt/bin:$PATH", "/opt/bin:/bin:/usr/bin", ""},
		{"${HOME}/x$HOME-y", "/home/li/x/home/li-y", ""},
		{"a$$b $$HOME $${HOME}", "a$b $HOME ${HOME}", ""},
		{"${NONE:-x} ${EMPTY:-${HOME}/y} ${HOME:-z}", "x /home/li/y /home/li", ""},
		{"pa$word", "pa$word", "word"},
		{"$1 $( $ ${ ${A ${A-b} ${1} 5$", "$1 $( $ ${ ${A ${A-b} ${1} 5$", ""},
		{"$X:/lib", ":/lib", ""}, // its own name, of which the task has nothing
		{"$OTHER", "other of /home/li", ""},
	} {
		got, unknown := ExpandEnv(map[string]string{"X": test.value, "OTHER": "other of $HOME"}, known)
		if got["X"] != test.want || unknown["X"] != test.unknown {
			t.Errorf("%q: %q, unknown %q; want %q, %q", test.value, got["X"], unknown["X"], test.want, test.unknown)
		}
	}
	got, unknown := ExpandEnv(map[string]string{"A": "a$B", "B": "b$A", "PATH": "x:$PATH"}, known)
	if got["PATH"] != "x:/bin:/usr/bin" || !strings.HasPrefix(got["A"], "ab") || len(unknown) == 0 {
		t.Errorf("values that name each other: %q, unknown %q", got, unknown)
	}
}

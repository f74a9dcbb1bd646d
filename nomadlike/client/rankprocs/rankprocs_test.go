package rankprocs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"nomadlike/nomadlike/launch"
)

// start runs a script once for each of three processes and returns the exit code
// and the lines that they wrote, sorted.
func start(t *testing.T, script string) (code int, lines []string) {
	t.Helper()
	procs := launch.Procs{Count: 3, Each: []launch.EachProc{
		{Name: "RANK_ID", Values: []string{"3", "4", "5"}},
		{Name: "DEVICE_ID", Values: []string{"0", "1", "2"}},
	}, Command: []string{"sh", "-c", script}}
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	code = run(t.Context(), procs.Args(), append(os.Environ(), "RANK_ID=wrong", "DIR="+t.TempDir()), out, out)
	text, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	lines = strings.Split(strings.TrimSpace(string(text)), "\n")
	slices.Sort(lines)
	return code, lines
}

func TestEachProcessHasItsOwnVariables(t *testing.T) {
	code, lines := start(t, `echo $RANK_ID on $DEVICE_ID`)
	if want := []string{"3 on 0", "4 on 1", "5 on 2"}; code != 0 || !slices.Equal(lines, want) {
		t.Fatalf("%d %q", code, lines)
	}
}

// TestOneFailureEndsTheOthers: the others would run for ever.
func TestOneFailureEndsTheOthers(t *testing.T) {
	code, lines := start(t, `[ $DEVICE_ID = 1 ] && { echo fails; exit 7; }; exec sleep 1000000`)
	if want := []string{"fails"}; code != 7 || !slices.Equal(lines, want) {
		t.Fatalf("%d %q", code, lines)
	}
}

func TestKilledProcess(t *testing.T) {
	if code, lines := start(t, `[ $DEVICE_ID = 2 ] && kill -9 $$; exec sleep 1000000`); code != 137 {
		t.Fatalf("%d %q", code, lines)
	}
}

func TestWhatCanNotStart(t *testing.T) {
	procs := launch.Procs{Count: 2, Command: []string{"no-such-program-anywhere"}}
	var out strings.Builder
	if code := run(t.Context(), procs.Args(), nil, &out, &out); code != codeNotFound || !strings.Contains(out.String(), "no-such-program-anywhere") {
		t.Fatalf("%d %s", code, out.String())
	}
	if code := run(t.Context(), []string{"x"}, nil, &out, &out); code != codeUsage {
		t.Fatalf("%d", code)
	}
}

// Package nvmltest gives tests an NVIDIA machine: a libnvidia-ml.so.1 that is
// compiled from testdata/fakelib and does what a text file says.
//
// Flow: Build compiles it, New makes the files that drive it; a test writes
// cards, links and processes into a Machine, and lets errors happen.
//
// Limits: it needs a C compiler; without one the test is skipped and says so.
// One process can load one library only: give variants with hidden functions
// to processes of their own, with Env. Only for tests.
package nvmltest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// compileLimit bounds a run of the compiler.
const compileLimit = 2 * time.Minute

// headers is where the binding keeps the vendor's header.
var headers = sync.OnceValues(func() (string, error) {
	output, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml").Output()
	if err != nil {
		return "", fmt.Errorf("find the binding's header: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(output)), "pkg", "nvml"), nil
})

// Build compiles the library without the named functions and gives its path.
func Build(t testing.TB, hidden ...string) string {
	t.Helper()
	compiler, err := exec.LookPath("gcc")
	if err != nil {
		if compiler, err = exec.LookPath("cc"); err != nil {
			t.Skip("no C compiler is installed here: the fake libnvidia-ml.so.1 cannot be built")
		}
	}
	include, err := headers()
	if err != nil {
		t.Fatal(err)
	}
	_, here, _, _ := runtime.Caller(0)
	// Not the test's own directory: its name may have signs that the linker
	// takes for its own.
	dir, err := os.MkdirTemp("", "nvmltest")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "libnvidia-ml.so.1")
	arguments := []string{
		"-shared", "-fPIC", "-O1", "-w", "-I", include, "-Wl,-soname,libnvidia-ml.so.1", "-o", path,
		filepath.Join(filepath.Dir(here), "testdata", "fakelib", "fake_nvml.c"), "-lpthread",
	}
	if len(hidden) > 0 {
		script := filepath.Join(dir, "hide.map")
		if err := os.WriteFile(script, []byte("{ local: "+strings.Join(hidden, "; ")+"; };\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		arguments = append(arguments, "-Wl,--version-script="+script)
	}
	ctx, cancel := context.WithTimeout(context.Background(), compileLimit)
	defer cancel()
	if output, err := exec.CommandContext(ctx, compiler, arguments...).CombinedOutput(); err != nil {
		t.Fatalf("compile the fake library: %v\n%s", err, output)
	}
	return path
}

// Machine drives a library.
type Machine struct {
	t      testing.TB
	script string
	events string

	mu struct {
		sync.Mutex
		lines []string
	}
}

// New makes a machine with the given lines in its script.
func New(t testing.TB, lines ...string) *Machine {
	t.Helper()
	dir := t.TempDir()
	m := &Machine{t: t, script: filepath.Join(dir, "script"), events: filepath.Join(dir, "events")}
	if err := os.WriteFile(m.events, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	m.Set(lines...)
	return m
}

// Env gives the variables that a process with the library needs.
func (m *Machine) Env() []string {
	return []string{"FAKE_NVML_SCRIPT=" + m.script, "FAKE_NVML_EVENTS=" + m.events}
}

// Here lets this process use the machine.
func (m *Machine) Here() {
	m.t.Helper()
	for _, each := range m.Env() {
		name, value, _ := strings.Cut(each, "=")
		m.setenv(name, value)
	}
}

func (m *Machine) setenv(name, value string) {
	if t, ok := m.t.(interface{ Setenv(string, string) }); ok {
		t.Setenv(name, value)
	}
}

// Set replaces the script.
func (m *Machine) Set(lines ...string) {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.lines = lines
	m.writeLocked()
}

// Add puts lines at the script's end.
func (m *Machine) Add(lines ...string) {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.lines = append(m.mu.lines[:len(m.mu.lines):len(m.mu.lines)], lines...)
	m.writeLocked()
}

// Remove takes away the lines that begin with any of the given texts.
func (m *Machine) Remove(beginnings ...string) {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	var kept []string
	for _, line := range m.mu.lines {
		stays := true
		for _, beginning := range beginnings {
			stays = stays && !strings.HasPrefix(line, beginning)
		}
		if stays {
			kept = append(kept, line)
		}
	}
	m.mu.lines = kept
	m.writeLocked()
}

// Change replaces old by new in every line.
func (m *Machine) Change(before, after string) {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.mu.lines {
		m.mu.lines[i] = strings.ReplaceAll(m.mu.lines[i], before, after)
	}
	m.writeLocked()
}

// writeLocked puts the script in place as a whole.
func (m *Machine) writeLocked() {
	m.t.Helper()
	next := m.script + ".new"
	if err := os.WriteFile(next, []byte(strings.Join(m.mu.lines, "\n")+"\n"), 0o600); err != nil {
		m.t.Fatal(err)
	}
	if err := os.Rename(next, m.script); err != nil {
		m.t.Fatal(err)
	}
}

// Happen lets an event happen, for instance "GPU-a xid=79".
func (m *Machine) Happen(event string) {
	m.t.Helper()
	file, err := os.OpenFile(m.events, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		m.t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString(event + "\n"); err != nil {
		m.t.Fatal(err)
	}
}

// Card gives the line of one healthy card; more may be put behind it.
func Card(number int) string {
	return fmt.Sprintf(`gpu uuid=GPU-%04d name="NVIDIA H100 80GB HBM3" bus=00000000:%02x:00.0 serial=16500%05d total=81559 used=4 arch=9 util=35 memutil=12 `+
		`power=312000 limit=700000 temp=41 sm=1980 mem=2619 recovery=0`, number, number+1, number)
}

// Cards gives the lines of several cards.
func Cards(count int) []string {
	lines := make([]string, count)
	for i := range lines {
		lines[i] = Card(i)
	}
	return lines
}

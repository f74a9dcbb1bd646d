// Package nvmltest provides tests with an NVIDIA machine: a libnvidia-ml.so.1 that is
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
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"nomadlike/plugins/device/fakelib"
)

// headers is where the binding keeps the vendor's header.
var headers = sync.OnceValues(func() (string, error) {
	output, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml").Output()
	if err != nil {
		return "", fmt.Errorf("find the binding's header: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(output)), "pkg", "nvml"), nil
})

// Build compiles the library without the named functions and returns its path.
func Build(t testing.TB, hidden ...string) string {
	t.Helper()
	include, err := headers()
	if err != nil {
		t.Fatal(err)
	}
	return fakelib.Library{Name: "libnvidia-ml.so.1", Source: "testdata/fakelib/fake_nvml.c", Flags: []string{"-I", include}}.Build(t, hidden...)
}

// eventsVariable names the file of events.
const eventsVariable = "FAKE_NVML_EVENTS"

// Machine drives a library.
type Machine struct {
	*fakelib.Script
	events string
}

// New makes a machine with the given lines in its script.
func New(t testing.TB, lines ...string) *Machine {
	t.Helper()
	m := &Machine{Script: fakelib.NewScript(t, "FAKE_NVML_SCRIPT", lines...), events: filepath.Join(t.TempDir(), "events")}
	if err := os.WriteFile(m.events, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return m
}

// Env returns the variables that a process with the library needs.
func (m *Machine) Env() []string { return append(m.Script.Env(), eventsVariable+"="+m.events) }

// Here lets this process use the machine.
func (m *Machine) Here() {
	m.T.Helper()
	m.Script.Here()
	if t, ok := m.T.(interface{ Setenv(name, value string) }); ok {
		t.Setenv(eventsVariable, m.events)
	}
}

// Change replaces before by after in every line.
func (m *Machine) Change(before, after string) { m.Script.Change("", before, after) }

// Happen lets an event happen, for instance "GPU-a xid=79".
func (m *Machine) Happen(event string) {
	m.T.Helper()
	file, err := os.OpenFile(m.events, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		m.T.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString(event + "\n"); err != nil {
		m.T.Fatal(err)
	}
}

// Card returns the line of one healthy card; more may be put behind it.
func Card(number int) string {
	return fmt.Sprintf(`gpu uuid=GPU-%04d name="NVIDIA H100 80GB HBM3" bus=00000000:%02x:00.0 serial=16500%05d total=81559 used=4 arch=9 util=35 memutil=12 `+
		`power=312000 limit=700000 temp=41 sm=1980 mem=2619 recovery=0`, number, number+1, number)
}

// Cards returns the lines of several cards.
func Cards(count int) []string {
	lines := make([]string, count)
	for i := range lines {
		lines[i] = Card(i)
	}
	return lines
}

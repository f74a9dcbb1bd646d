// Package dcmitest gives tests an Ascend machine: a libdcmi.so that is compiled
// from testdata/fakelib and does what a text file says.
//
// Flow: Build compiles it, New makes the file that drives it; a test writes
// chips, faults and processes into a Machine.
//
// Limits: it needs a C compiler; without one the test is skipped and says so.
// Only for tests.
package dcmitest

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

// Build compiles the library without the named functions and gives its path.
func Build(t testing.TB, hidden ...string) string {
	t.Helper()
	compiler, err := exec.LookPath("gcc")
	if err != nil {
		if compiler, err = exec.LookPath("cc"); err != nil {
			t.Skip("no C compiler is installed here: the fake libdcmi.so cannot be built")
		}
	}
	_, here, _, _ := runtime.Caller(0)
	// Not the test's own directory: its name may have signs that the linker
	// takes for its own.
	dir, err := os.MkdirTemp("", "dcmitest")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "libdcmi.so")
	arguments := []string{"-shared", "-fPIC", "-O1", "-w", "-o", path, filepath.Join(filepath.Dir(here), "testdata", "fakelib", "fake_dcmi.c"), "-lpthread"}
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

	mu struct {
		sync.Mutex
		lines []string
	}
}

// New makes a machine with the given lines in its script.
func New(t testing.TB, lines ...string) *Machine {
	t.Helper()
	m := &Machine{t: t, script: filepath.Join(t.TempDir(), "script")}
	m.Set(lines...)
	return m
}

// Env gives the variables that a process with the library needs.
func (m *Machine) Env() []string { return []string{"FAKE_DCMI_SCRIPT=" + m.script} }

// Set replaces the script.
func (m *Machine) Set(lines ...string) {
	m.change(func([]string) []string { return lines })
}

// Add puts lines at the script's end.
func (m *Machine) Add(lines ...string) {
	m.change(func(all []string) []string { return append(all[:len(all):len(all)], lines...) })
}

// Remove takes away the lines that begin with any of the given texts.
func (m *Machine) Remove(beginnings ...string) {
	m.change(func(all []string) []string {
		var kept []string
		for _, line := range all {
			stays := true
			for _, beginning := range beginnings {
				stays = stays && !strings.HasPrefix(line, beginning)
			}
			if stays {
				kept = append(kept, line)
			}
		}
		return kept
	})
}

// Change replaces before by after in every line that begins with which.
func (m *Machine) Change(which, before, after string) {
	m.change(func(all []string) []string {
		for i := range all {
			if strings.HasPrefix(all[i], which) {
				all[i] = strings.ReplaceAll(all[i], before, after)
			}
		}
		return all
	})
}

// change puts a new script in place as a whole.
func (m *Machine) change(how func([]string) []string) {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.lines = how(m.mu.lines)
	next := m.script + ".new"
	if err := os.WriteFile(next, []byte(strings.Join(m.mu.lines, "\n")+"\n"), 0o600); err != nil {
		m.t.Fatal(err)
	}
	if err := os.Rename(next, m.script); err != nil {
		m.t.Fatal(err)
	}
}

// Chip gives the line of one healthy chip on a card of its own.
func Chip(number int) string {
	return fmt.Sprintf("chip card=%d chip=0 phy=%d die=%d name=910B3 hbm=65536 used=3400 health=0 util=35 bus=%d ip=192.168.%d.%d",
		number, number, 0x1000+number, number+0x40, 10+number%4, 20+number)
}

// Chips gives the lines of several chips, in two rings.
func Chips(count int) []string {
	var lines []string
	for i := range count {
		lines = append(lines, Chip(i))
	}
	for i := range count {
		for k := i + 1; k < count && k/4 == i/4; k++ {
			lines = append(lines, fmt.Sprintf("link %d %d", i, k))
		}
	}
	return lines
}

// Package fakelib compiles stand-ins for vendors' libraries and drives them in
// tests.
//
// Flow: a vendor's test package has a C file that includes script.h and answers
// the calls; Library.Build compiles it, and a Script is the text file that says
// what there is, and which function hangs, crashes or fails.
//
// Limits: it needs a C compiler; without one the test is skipped and says so.
// Only for tests.
package fakelib

import (
	"context"
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

// Library is what is compiled.
type Library struct {
	Name   string   // of the file, "libdcmi.so"
	Source string   // the C file, beside the file that calls Build: "testdata/fakelib/fake_dcmi.c"
	Flags  []string // besides the usual
}

// Build compiles the library without the hidden functions and returns its path.
func (l Library) Build(t testing.TB, hidden ...string) string {
	t.Helper()
	compiler, err := exec.LookPath("gcc")
	if err != nil {
		if compiler, err = exec.LookPath("cc"); err != nil {
			t.Skipf("no C compiler is installed here: the fake %s cannot be built", l.Name)
		}
	}
	_, here, _, _ := runtime.Caller(0)
	_, caller, _, _ := runtime.Caller(1)
	here, caller = onDisk(t, here), onDisk(t, caller)
	// Not the test's own directory: its name may have signs that the linker
	// takes for its own.
	dir, err := os.MkdirTemp("", "fakelib")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, l.Name)
	arguments := append([]string{"-shared", "-fPIC", "-O1", "-w", "-I", filepath.Join(filepath.Dir(here), "testdata")}, l.Flags...)
	arguments = append(arguments, "-Wl,-soname,"+l.Name, "-o", path, filepath.Join(filepath.Dir(caller), l.Source), "-lpthread")
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

// onDisk returns where a source file lies that the compiler names: with -trimpath
// it names the module in place of its directory.
func onDisk(t testing.TB, file string) string {
	t.Helper()
	if filepath.IsAbs(file) {
		return file
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for dir != "/" {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		dir = filepath.Dir(dir)
	}
	_, inside, _ := strings.Cut(file, "/")
	return filepath.Join(dir, inside)
}

// Script drives a library.
type Script struct {
	T        testing.TB
	variable string // that names the file
	path     string

	mu struct {
		sync.Mutex
		lines []string
	}
}

// NewScript makes a script with the given lines, which the library finds by the
// named variable.
func NewScript(t testing.TB, variable string, lines ...string) *Script {
	t.Helper()
	s := &Script{T: t, variable: variable, path: filepath.Join(t.TempDir(), "script")}
	s.Set(lines...)
	return s
}

// Env returns the variables that a process with the library needs.
func (s *Script) Env() []string { return []string{s.variable + "=" + s.path} }

// Here lets this process use the library.
func (s *Script) Here() {
	s.T.Helper()
	if t, ok := s.T.(interface{ Setenv(name, value string) }); ok {
		t.Setenv(s.variable, s.path)
	}
}

// Set replaces the script.
func (s *Script) Set(lines ...string) {
	s.change(func([]string) []string { return lines })
}

// Add puts lines at the script's end.
func (s *Script) Add(lines ...string) {
	s.change(func(all []string) []string { return append(all[:len(all):len(all)], lines...) })
}

// Remove takes away the lines that begin with any of the given texts.
func (s *Script) Remove(beginnings ...string) {
	s.change(func(all []string) []string {
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
func (s *Script) Change(which, before, after string) {
	s.change(func(all []string) []string {
		for i := range all {
			if strings.HasPrefix(all[i], which) {
				all[i] = strings.ReplaceAll(all[i], before, after)
			}
		}
		return all
	})
}

// change puts a new script in place as a whole.
func (s *Script) change(how func([]string) []string) {
	s.T.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.lines = how(s.mu.lines)
	next := s.path + ".new"
	if err := os.WriteFile(next, []byte(strings.Join(s.mu.lines, "\n")+"\n"), 0o600); err != nil {
		s.T.Fatal(err)
	}
	if err := os.Rename(next, s.path); err != nil {
		s.T.Fatal(err)
	}
}

package host

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
)

// glibcMost is the newest glibc that an embedded program may need: that of the oldest
// distributions whose nodes are to work.
const glibcMost = 17 // of 2.17

// The embedded nvidia plugin starts with glibc 2.17. It needs nothing of a C library
// without saying which version: a name that the table of plugins/host/libc lacks would
// be bound to whatever is there, or end the program at its first use.
func TestEmbeddedPluginsNeedAnOldLibrary(t *testing.T) {
	unpacked, err := unpack("nvidia")
	if err != nil {
		t.Logf("no nvidia plugin was built: %v", err)
		return
	}
	defer unpacked.Close()
	contents, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range libraryProblems(contents) {
		t.Errorf("nvidia: %s", problem)
	}
}

// What this test program was linked with by the machine's own compiler is refused
// where that is newer, so that the test is known to look.
func TestNewLibraryIsSeen(t *testing.T) {
	for version, want := range map[string]bool{"GLIBC_2.34": true, "GLIBC_2.18": true, "GLIBC_2.17": false, "GLIBC_2.2.5": false, "GLIBC_2.3.3": false, "GLIBC_3.0": true, "GLIBC_PRIVATE": true} {
		if tooNew(version) != want {
			t.Errorf("%s: %v", version, !want)
		}
	}
}

func libraryProblems(contents []byte) (problems []string) {
	file, err := elf.NewFile(bytes.NewReader(contents))
	if err != nil {
		return []string{err.Error()}
	}
	symbols, err := file.ImportedSymbols()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		return []string{err.Error()}
	}
	for _, symbol := range symbols {
		switch {
		case symbol.Library == "" && !strings.HasPrefix(symbol.Name, "nvml") && symbol.Name != "__gmon_start__":
			problems = append(problems, "it does not say which version of "+symbol.Name+" it needs: add it to plugins/host/libc/symbols")
		case symbol.Library != "" && tooNew(symbol.Version):
			problems = append(problems, fmt.Sprintf("it needs %s of %s", symbol.Name, symbol.Version))
		}
	}
	return problems
}

func tooNew(version string) bool {
	number, ok := strings.CutPrefix(version, "GLIBC_2.")
	first, _, _ := strings.Cut(number, ".")
	minor, err := strconv.Atoi(first)
	return !ok || err != nil || minor > glibcMost
}

// Package dcmitest provides tests with an Ascend machine: a libdcmi.so that is compiled
// from testdata/fakelib and does what a text file says.
//
// Flow: Build compiles it, New makes the file that drives it; a test writes
// chips, faults and processes into a Machine.
//
// Limits: it needs a C compiler; without one the test is skipped and says so.
// Only for tests.
package dcmitest

import (
	"fmt"
	"testing"

	"nomadlike/plugins/device/fakelib"
)

// Build compiles the library without the named functions and returns its path.
func Build(t testing.TB, hidden ...string) string {
	t.Helper()
	return fakelib.Library{Name: "libdcmi.so", Source: "testdata/fakelib/fake_dcmi.c"}.Build(t, hidden...)
}

// Machine drives a library.
type Machine struct{ *fakelib.Script }

// New makes a machine with the given lines in its script.
func New(t testing.TB, lines ...string) *Machine {
	t.Helper()
	return &Machine{fakelib.NewScript(t, "FAKE_DCMI_SCRIPT", lines...)}
}

// Chip returns the line of one healthy chip on a card of its own.
func Chip(number int) string {
	return fmt.Sprintf("chip card=%d chip=0 phy=%d die=%d name=910B3 hbm=65536 used=3400 health=0 util=35 bus=%d ip=192.168.%d.%d",
		number, number, 0x1000+number, number+0x40, 10+number%4, 20+number)
}

// Chips returns the lines of several chips, in two rings.
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

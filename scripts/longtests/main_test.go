package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestLeftOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, `package p
import "testing"
func TestLong(t *testing.T) { long(t) }
func TestPart(t *testing.T) { n := 8; if testing.Short() { n = 3 }; _ = n }
func TestFar(t *testing.T) { t.Run("x", func(t *testing.T) { near(t) }) }
func TestNone(t *testing.T) { t.Log("short") }
func near(t *testing.T) { long(t) }
func long(t *testing.T) { if testing.Short() { t.Skip() } }
`)
	got, err := leftOut(dir)
	if want := []string{"TestFar", "TestLong", "TestPart"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("left out are %q, %v", got, err)
	}
}

// What asks and is reached by no test would be left out for good.
func TestLeftOutForGood(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, `package p
import "testing"
type suite struct{}
func (suite) run(t *testing.T) { if testing.Short() { t.Skip() } }
func TestSuite(t *testing.T) { suite{}.run(t) }
`)
	if got, err := leftOut(dir); err == nil || !strings.Contains(err.Error(), "run asks") {
		t.Errorf("left out are %q, %v", got, err)
	}
}

func write(t *testing.T, dir, source string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "p_test.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
}

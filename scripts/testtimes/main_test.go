package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTables(t *testing.T) {
	const events = `# a compiler's line
{"Action":"run","Package":"a","Test":"TestSlow"}
{"Action":"output","Package":"a","Test":"TestSlow","Output":"..."}
{"Action":"pass","Package":"a","Test":"TestSlow","Elapsed":2.5}
{"Action":"pass","Package":"a","Test":"TestSlow/part","Elapsed":1.5}
{"Action":"pass","Package":"a","Test":"TestBeside","Elapsed":0.25}
{"Action":"fail","Package":"b","Test":"TestBad","Elapsed":0.25}
{"Action":"fail","Package":"b","Elapsed":0.5}
{"Action":"pass","Package":"a","Elapsed":3}
{"Action":"skip","Package":"c","Elapsed":0}
`
	const want = `FAILED  b 
FAILED  b TestBad
     3.5 s in all packages
     3.0 s a

     2.8 s a/slow_test.go

     2.5 s a TestSlow
     1.5 s a TestSlow/part
     0.2 s a TestBeside
     0.2 s b TestBad
`
	tests, packages, err := read(strings.NewReader(events))
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "a"), 0o700); err != nil {
		t.Fatal(err)
	}
	source := []byte("package a\n\nfunc TestSlow(t *testing.T) {}\nfunc TestBeside(t *testing.T) {}\n")
	if err := os.WriteFile(filepath.Join(root, "a", "slow_test.go"), source, 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := byFile(root, tests)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if failed := write(&text, tests, packages, files); !failed || text.String() != want {
		t.Errorf("failed: %t\n%s", failed, text.String())
	}
}

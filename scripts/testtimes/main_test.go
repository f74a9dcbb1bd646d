package main

import (
	"strings"
	"testing"
)

func TestTables(t *testing.T) {
	const events = `# a compiler's line
{"Action":"run","Package":"a","Test":"TestSlow"}
{"Action":"output","Package":"a","Test":"TestSlow","Output":"..."}
{"Action":"pass","Package":"a","Test":"TestSlow","Elapsed":2.5}
{"Action":"fail","Package":"b","Test":"TestBad","Elapsed":0.25}
{"Action":"fail","Package":"b","Elapsed":0.5}
{"Action":"pass","Package":"a","Elapsed":3}
{"Action":"skip","Package":"c","Elapsed":0}
`
	const want = `FAILED  b 
FAILED  b TestBad
     3.5 s in all packages
     3.0 s a

     2.5 s a TestSlow
     0.2 s b TestBad
`
	tests, packages, err := read(strings.NewReader(events))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if failed := write(&text, tests, packages); !failed || text.String() != want {
		t.Errorf("failed: %t\n%s", failed, text.String())
	}
}

// Command testtimes reads what `go test -json` prints and writes which tests and
// packages took longest, with those that failed first.
//
// Flow: one event a line on standard input; two tables on standard output.
//
// Limits: a test that runs beside others takes as long as it takes there.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
)

const (
	testsShown = 40
	lineMax    = 1 << 20
)

// took is a test, or a package where Test is empty, with how it ended.
type took struct {
	Action  string
	Package string
	Test    string
	Elapsed float64 // seconds
}

func main() {
	tests, packages, err := read(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testtimes:", err)
		os.Exit(1)
	}
	failed := write(os.Stdout, tests, packages)
	if failed {
		os.Exit(1)
	}
}

// read gives what ended, longest first. Lines that are no events, as compilers
// print them, are passed over.
func read(from io.Reader) (tests, packages []took, err error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, lineMax)
	for lines.Scan() {
		var event took
		if json.Unmarshal(lines.Bytes(), &event) != nil || event.Action != "pass" && event.Action != "fail" {
			continue
		}
		if event.Test == "" {
			packages = append(packages, event)
		} else {
			tests = append(tests, event)
		}
	}
	longest := func(a, b took) int {
		return cmp.Or(cmp.Compare(b.Elapsed, a.Elapsed), cmp.Compare(a.Package, b.Package), cmp.Compare(a.Test, b.Test))
	}
	slices.SortFunc(tests, longest)
	slices.SortFunc(packages, longest)
	return tests, packages, lines.Err()
}

// write prints the tables and reports whether anything failed.
func write(to io.Writer, tests, packages []took) (failed bool) {
	for _, each := range slices.Concat(packages, tests) {
		if each.Action == "fail" {
			failed = true
			fmt.Fprintf(to, "FAILED  %s %s\n", each.Package, each.Test)
		}
	}
	total := 0.0
	for _, each := range packages {
		total += each.Elapsed
	}
	fmt.Fprintf(to, "%8.1f s in all packages\n", total)
	for _, each := range packages {
		if each.Elapsed >= 1 {
			fmt.Fprintf(to, "%8.1f s %s\n", each.Elapsed, each.Package)
		}
	}
	fmt.Fprintln(to)
	for _, each := range tests[:min(len(tests), testsShown)] {
		fmt.Fprintf(to, "%8.1f s %s %s\n", each.Elapsed, each.Package, each.Test)
	}
	return failed
}

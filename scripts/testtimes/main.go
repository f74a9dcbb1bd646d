// Command testtimes reads what `go test -json` prints and writes which packages, test
// files and tests took longest, with those that failed first.
//
// Flow: one event a line on standard input; three tables on standard output. Files are
// looked up in the current directory, the root of the module.
//
// Limits: a test that runs beside others takes as long as it takes there. Subtests
// count with the test that has them.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	testsShown = 40
	filesShown = 25
	module     = "nomadlike"
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
	files, err := byFile(".", tests)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testtimes:", err)
		os.Exit(1)
	}
	failed := write(os.Stdout, tests, packages, files)
	if failed {
		os.Exit(1)
	}
}

// read returns what ended, longest first. Lines that are no events, as compilers
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
	slices.SortFunc(tests, longest)
	slices.SortFunc(packages, longest)
	return tests, packages, lines.Err()
}

// longest orders by time, then by name.
func longest(a, b took) int {
	return cmp.Or(cmp.Compare(b.Elapsed, a.Elapsed), cmp.Compare(a.Package, b.Package), cmp.Compare(a.Test, b.Test))
}

// declared matches the head of a test function.
var declared = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w*)\(`)

// byFile adds up the tests of each test file below root, longest first. Action stays
// empty; Test is the path of the file.
func byFile(root string, tests []took) ([]took, error) {
	fileOf := make(map[string]map[string]string) // package, test: file
	sums := make(map[string]*took)
	for _, each := range tests {
		if strings.Contains(each.Test, "/") {
			continue // counts with its parent
		}
		if fileOf[each.Package] == nil {
			found, err := filesOf(root, each.Package)
			if err != nil {
				return nil, err
			}
			fileOf[each.Package] = found
		}
		file := fileOf[each.Package][each.Test]
		if sums[file] == nil {
			sums[file] = &took{Package: each.Package, Test: file}
		}
		sums[file].Elapsed += each.Elapsed
	}
	delete(sums, "") // of another module
	var files []took
	for _, sum := range sums {
		files = append(files, *sum)
	}
	slices.SortFunc(files, longest)
	return files, nil
}

// filesOf returns the file of each test of a package.
func filesOf(root, pkg string) (map[string]string, error) {
	dir := strings.TrimPrefix(strings.TrimPrefix(pkg, module), "/")
	paths, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
	if err != nil {
		return nil, fmt.Errorf("list test files of %s: %w", pkg, err)
	}
	found := make(map[string]string)
	for _, path := range paths {
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read a test file: %w", err)
		}
		for _, match := range declared.FindAllSubmatch(source, -1) {
			found[string(match[1])] = filepath.ToSlash(filepath.Join(dir, filepath.Base(path)))
		}
	}
	return found, nil
}

// write prints the tables and reports whether anything failed.
func write(to io.Writer, tests, packages, files []took) (failed bool) {
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
	for _, each := range files[:min(len(files), filesShown)] {
		fmt.Fprintf(to, "%8.1f s %s\n", each.Elapsed, each.Test)
	}
	fmt.Fprintln(to)
	for _, each := range tests[:min(len(tests), testsShown)] {
		fmt.Fprintf(to, "%8.1f s %s %s\n", each.Elapsed, each.Package, each.Test)
	}
	return failed
}

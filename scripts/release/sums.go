package main

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
)

// sums is the text that sha256sum -c reads.
func sums(files []entry) ([]byte, error) {
	var lines []string
	for _, file := range files {
		contents, err := file.contents()
		if err != nil {
			return nil, err
		}
		lines = append(lines, fmt.Sprintf("%x  %s\n", sha256.Sum256(contents), file.name))
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[66:], b[66:]) })
	return []byte(strings.Join(lines, "")), nil
}

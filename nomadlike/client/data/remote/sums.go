package remote

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"nomadlike/nomadlike/client/data"
)

const (
	listBytesMax = 64 << 20 // of a list of files
	lineBytesMax = 8 << 10
)

// ParseList reads a list of files, as sha256sum writes it: on each line a digest,
// two blanks or a blank and "*", and a path relative to the list. A "-" stands
// for a digest that nobody knows. Empty lines, and those that begin with "#",
// say nothing. Pure.
func ParseList(text []byte) ([]data.File, error) {
	var files []data.File
	scanner := bufio.NewScanner(bytes.NewReader(text))
	scanner.Buffer(nil, lineBytesMax)
	for number := 1; scanner.Scan(); number++ {
		line := strings.TrimSuffix(scanner.Text(), "\r")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		file, err := parseLine(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if len(files) == data.SourceFilesMax {
			return nil, fmt.Errorf("more than %d files", data.SourceFilesMax)
		}
		files = append(files, file)
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", len(files)+1, err)
	}
	return files, nil
}

var errLine = errors.New("neither a digest and a path, nor \"-\" and a path")

func parseLine(line string) (data.File, error) {
	rest, escaped := strings.CutPrefix(line, `\`) // sha256sum marks names with line breaks so
	word, name, found := strings.Cut(rest, " ")
	if !found || len(name) < 2 || name[0] != ' ' && name[0] != '*' {
		return data.File{}, errLine
	}
	name = name[1:]
	if escaped {
		name = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r").Replace(name)
	}
	file := data.File{Path: strings.Clone(strings.TrimPrefix(name, "./"))} // not the line
	if word == "-" {
		return file, nil
	}
	sum, err := hex.DecodeString(word)
	if err != nil || len(sum) != sha256.Size {
		return data.File{}, errLine
	}
	file.SHA256 = sum
	return file, nil
}

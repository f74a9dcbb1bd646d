package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
)

// LineMax bounds a line, its newline included, in bytes.
const LineMax = 16 << 10

// Errors of lines.
var (
	errLine = errors.New("not a line of the audit record")
	errLong = fmt.Errorf("longer than %d bytes", LineMax)
)

// Head is a place in a chain: the number of a line, and its hash. The zero value
// stands before the first line.
type Head struct {
	Seq  uint64
	Hash string // SHA-256 of the line without its newline, in hexadecimal
}

// Encode makes the line of a record, with its newline. The same record always
// makes the same bytes.
func Encode(r Record) ([]byte, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode audit record: %w", err)
	}
	return append(data, '\n'), nil
}

// Parse reads a line, with or without its newline. It knows lines of later
// versions, whose other fields it leaves out.
func Parse(line []byte) (Record, error) {
	line = bytes.TrimSuffix(line, []byte{'\n'})
	if len(line) >= LineMax {
		return Record{}, errLong
	}
	if len(line) == 0 || line[0] != '{' || line[len(line)-1] != '}' || bytes.IndexByte(line, '\n') >= 0 {
		return Record{}, errLine
	}
	var r Record
	if err := json.Unmarshal(line, &r); err != nil {
		return Record{}, fmt.Errorf("%w: %w", errLine, err)
	}
	if r.Seq == 0 || r.Server == "" || r.Prev != "" && !isHash(r.Prev) {
		return Record{}, errLine
	}
	return r, nil
}

// HashLine is the hash of a line, without its newline, in hexadecimal.
func HashLine(line []byte) string {
	sum := sha256.Sum256(bytes.TrimSuffix(line, []byte{'\n'}))
	return hex.EncodeToString(sum[:])
}

func isHash(text string) bool {
	if len(text) != 2*sha256.Size {
		return false
	}
	for _, c := range []byte(text) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

package words

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"nomadlike/nomadlike/structs"
)

// shortMost is how much of a command or of an output is said, in bytes.
const shortMost = 200

// Short is the beginning of a command, for messages.
func Short(command string) string {
	if len(command) > shortMost {
		return strings.ToValidUTF8(command[:shortMost], "") + "…"
	}
	return command
}

// Cause is the last part of an error of a file: the path is told already.
func Cause(err error) string {
	var file *fs.PathError
	switch {
	case err == nil:
		return "not a directory"
	case errors.As(err, &file):
		return file.Err.Error()
	}
	return err.Error()
}

// Mebibytes writes a number of bytes as people read it.
func Mebibytes(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

// Roughly is a size for people.
func Roughly(bytes int64) string {
	unit := int64(1)
	switch {
	case bytes >= 10*structs.MiB:
		unit = structs.MiB
	case bytes >= 10*structs.KiB:
		unit = structs.KiB
	}
	return structs.FormatSize(bytes / unit * unit)
}

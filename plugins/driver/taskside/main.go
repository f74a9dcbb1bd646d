//go:build linux

package taskside

import (
	"fmt"
	"io"
	"os"
)

// Main runs a role on the standard streams and returns the exit code.
func Main(words []string) int {
	if !Known(words) {
		fmt.Fprintln(os.Stderr, "nomadlike: this role is unknown")
		return 2
	}
	var err error
	switch words[0] {
	case SFTP:
		err = ServeFiles(struct {
			io.Reader
			io.Writer
		}{os.Stdin, os.Stdout})
	case Dial:
		err = connect(words[1], words[2], os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

//go:build !linux

package beneath

import (
	"errors"
	"os"
)

// Open opens nothing: agents run on Linux only.
func Open(_, rel string) (*os.File, error) {
	return nil, &os.PathError{Op: "open", Path: rel, Err: errors.ErrUnsupported}
}

// Root opens nothing: agents run on Linux only.
func Root(_, rel string) (*os.Root, error) {
	return nil, &os.PathError{Op: "open", Path: rel, Err: errors.ErrUnsupported}
}

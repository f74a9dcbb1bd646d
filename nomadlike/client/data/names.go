package data

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

const (
	namesBlock = 1 << 20  // bytes
	namesMax   = 96 << 20 // bytes of the names that a walk holds at once: a directory's and those of the ones above it
	namesRead  = 1024     // asked of the kernel at a time
)

// errNames refuses a directory that has more names than an agent sorts at once.
var errNames = fmt.Errorf("a directory has more names than %d MiB hold, about three million: spread its files over several", namesMax>>20)

// names are those in one directory, sorted. They lie behind each other in a few
// large blocks: as strings millions of them would be as large as a copy.
type names struct {
	blocks [][]byte
	at     []uint32 // where each begins: a byte with its length, and then itself
	bytes  int      // that all of it takes
}

// add appends a name, of at most 255 bytes as the kernel's are.
func (n *names) add(name string) error {
	if len(name) > 255 {
		return errors.New("a name has more than 255 bytes")
	}
	last := len(n.blocks) - 1
	if last < 0 || len(n.blocks[last])+1+len(name) > namesBlock {
		n.blocks, last = append(n.blocks, make([]byte, 0, namesBlock)), last+1
	}
	n.at = append(n.at, uint32(last*namesBlock+len(n.blocks[last])))
	n.blocks[last] = append(append(n.blocks[last], byte(len(name))), name...)
	n.bytes += 1 + len(name) + 4
	return nil
}

func (n *names) text(at uint32) []byte {
	block := n.blocks[at/namesBlock][at%namesBlock:]
	return block[1 : 1+int(block[0])]
}

// some returns a part of the names.
func (n *names) some(from, to int) []string {
	list := make([]string, 0, to-from)
	for _, at := range n.at[from:to] {
		list = append(list, string(n.text(at)))
	}
	return list
}

// readNames reads a directory, of whose names no more than max bytes are taken.
func readNames(d *os.File, most int) (*names, error) {
	n := new(names)
	for {
		list, err := d.Readdirnames(namesRead)
		for _, name := range list {
			if err := n.add(name); err != nil {
				return nil, err
			}
		}
		if n.bytes > most {
			return nil, errNames
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(n.at, func(a, b uint32) int { return bytes.Compare(n.text(a), n.text(b)) })
	return n, nil
}

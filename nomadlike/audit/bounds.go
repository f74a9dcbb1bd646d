package audit

import (
	"time"

	"nomadlike/nomadlike/structs"
)

// Sizes of files.
const (
	fileSizeMin = 1 << 20  // bytes
	fileSizeMax = 16 << 20 // bytes
	filesOf     = 20       // files that the time and the size of a chain are divided among
)

// Bounds say for how long, and how much of, a chain is kept.
type Bounds struct {
	Keep    time.Duration
	SizeMax int64 // bytes
}

// File is one file of a chain.
type File struct {
	First  uint64           // number of its first line
	Size   int64            // bytes
	Begun  structs.UnixNano // time of its first record
	Newest structs.UnixNano // time of its newest record
}

// fileSize is how large one file may become.
func (b Bounds) fileSize() int64 { return min(max(b.SizeMax/filesOf, fileSizeMin), fileSizeMax) }

// Full reports whether the next line belongs into a new file: files are what is
// removed, so none may span much of the time that is kept.
func (b Bounds) Full(f File, now structs.UnixNano) bool {
	return f.Size > 0 && (f.Size >= b.fileSize() || f.Begun > 0 && now.Sub(f.Begun) > max(b.Keep/filesOf, time.Hour))
}

// Expired returns how many of a chain's files, oldest first, are to be removed:
// those whose records are all too old, and those beyond the size. The last file,
// which is written to, is never among them.
func (b Bounds) Expired(files []File, now structs.UnixNano) int {
	total := int64(0)
	for _, f := range files {
		total += f.Size
	}
	n := 0
	for ; n < len(files)-1; n++ {
		if now.Sub(files[n].Newest) <= b.Keep && total <= b.SizeMax {
			break
		}
		total -= files[n].Size
	}
	return n
}

package checkpoint

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Entry is one entry of a watched directory.
type Entry struct {
	Name     string
	Bytes    int64     // of a directory: of the files directly in it
	Modified time.Time // of a directory: the newest of itself and of those files
}

// settledAfter is how long an entry must be unchanged to count as whole while its
// task runs.
const settledAfter = 2 * time.Second

// End says how a watched task stands.
type End int

// The stands of a task: it runs, it ended well, or it ended otherwise, so that it
// may have been cut off while it wrote.
const (
	Running End = iota
	EndedWell
	EndedBadly
)

// Watch decides which entry of a directory is a checkpoint that is whole. The
// zero value has seen nothing. It is pure and not safe for concurrent use.
type Watch struct {
	seen map[string]seen
	told string // name of the newest that was given
	at   Entry  // what it was then
}

// seen is an entry as the last looks found it.
type seen struct {
	entry Entry
	since time.Time // unchanged since this look
}

// Step takes a look at the directory at now, and returns the newest entry that
// matches pattern and is whole, once. An entry is whole that has not changed for
// settledAfter, and at the end of its task
//
//	ended well    every one: nothing is written any more
//	ended badly   one that an earlier look saw as it is now, or that is no
//	              smaller than the newest before it: checkpoints of one training
//	              have one size, and a save that was cut off is smaller
//
// The newest is the one with the highest number in its name, or the one that
// changed last when a name has none.
func (w *Watch) Step(entries []Entry, pattern string, now time.Time, end End) (Entry, bool) {
	if pattern == "" {
		pattern = "*"
	}
	fresh := make(map[string]seen, len(entries))
	var whole, fleeting []Entry
	for _, e := range entries {
		if ok, err := path.Match(pattern, e.Name); err != nil || !ok || unfinished(e.Name) {
			continue
		}
		s := seen{entry: e, since: now}
		before, again := w.seen[e.Name]
		if again = again && same(before.entry, e); again {
			s.since = before.since
		}
		fresh[e.Name] = s
		if end == EndedWell || end == EndedBadly && again || now.Sub(s.since) >= settledAfter {
			whole = append(whole, e)
		} else {
			fleeting = append(fleeting, e)
		}
	}
	if end == EndedBadly {
		before, known := w.at, w.told != ""
		if len(whole) > 0 {
			before, known = slices.MaxFunc(whole, compare), true
		}
		for _, e := range fleeting {
			if known && e.Bytes >= before.Bytes {
				whole = append(whole, e)
			}
		}
	}
	w.seen = fresh
	if len(whole) == 0 {
		return Entry{}, false
	}
	newest := slices.MaxFunc(whole, compare)
	if newest.Name == w.told && same(newest, w.at) {
		return Entry{}, false
	}
	if before, ok := fresh[w.told]; ok && compare(newest, before.entry) < 0 {
		return Entry{}, false // the one that was given is being written again
	}
	w.told, w.at = newest.Name, newest
	return newest, true
}

func same(x, y Entry) bool { return x.Bytes == y.Bytes && x.Modified.Equal(y.Modified) }

// unfinished recognises a name that programs give to what they are still writing.
func unfinished(name string) bool {
	if strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~") {
		return true
	}
	switch path.Ext(name) {
	case ".tmp", ".part", ".partial", ".temp", ".swp", ".lock":
		return true
	}
	return false
}

// compare orders entries by age.
func compare(x, y Entry) int {
	if stepX, stepY := StepOf(x.Name), StepOf(y.Name); stepX > 0 && stepY > 0 && stepX != stepY {
		if stepX < stepY {
			return -1
		}
		return 1
	}
	if c := x.Modified.Compare(y.Modified); c != 0 {
		return c
	}
	return strings.Compare(x.Name, y.Name)
}

// StepOf is the last number in a name, before its extension: 1200 of
// "step-1200.pt". 0: there is none.
func StepOf(name string) int64 {
	if ext := path.Ext(name); strings.ContainsFunc(strings.TrimPrefix(ext, "."), func(c rune) bool { return c < '0' || c > '9' }) {
		name = strings.TrimSuffix(name, ext)
	}
	isDigit := func(c byte) bool { return c >= '0' && c <= '9' }
	end := len(name)
	for end > 0 && !isDigit(name[end-1]) {
		end--
	}
	begin := end
	for begin > 0 && isDigit(name[begin-1]) {
		begin--
	}
	step, err := strconv.ParseInt(name[begin:end], 10, 64)
	if err != nil {
		return 0
	}
	return step
}

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

// settledAfter is how long an entry must be unchanged to count as whole.
const settledAfter = 2 * time.Second

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

// Step takes a look at the directory at now, and gives the newest entry that
// matches pattern and is whole, once. over says that the task has ended well
// and nothing is written any more. The newest is the one with the highest
// number in its name, or the one that changed last when a name has none.
func (w *Watch) Step(entries []Entry, pattern string, now time.Time, over bool) (Entry, bool) {
	if pattern == "" {
		pattern = "*"
	}
	fresh := make(map[string]seen, len(entries))
	var whole []Entry
	for _, e := range entries {
		if ok, err := path.Match(pattern, e.Name); err != nil || !ok || unfinished(e.Name) {
			continue
		}
		s := seen{entry: e, since: now}
		if before, ok := w.seen[e.Name]; ok && same(before.entry, e) {
			s.since = before.since
		}
		fresh[e.Name] = s
		if over || now.Sub(s.since) >= settledAfter {
			whole = append(whole, e)
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

// unfinished tells a name that programs give to what they are still writing.
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

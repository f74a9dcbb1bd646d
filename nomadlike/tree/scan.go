package tree

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"nomadlike/nomadlike/structs"
)

// Options say how a directory is scanned. The zero value is what most want.
type Options struct {
	BytesMax int64 // of all files together; 0: BytesMaxDefault, and no bound with Data
	// Committed: what lies there was taken from a commit, so that files of git's that say
	// what is not to be committed say nothing.
	Committed bool
	// Alone: what lies above the directory says nothing of it; it came from elsewhere.
	Alone bool
	// Fill is called with the files that go along, once they are known and before the
	// first of them is read: whoever made the directory with names and sizes alone writes
	// the bytes then, and leaves sizes and times as they were.
	Fill func(files []string) error
	// Data is no code: nothing stays behind but what an OwnIgnore in the directory says,
	// any number of bytes travel, and the manifest is Settled.
	Data bool
	// Progress is told from time to time how many bytes have been read, of how many.
	Progress func(read, all int64)
}

// LeftOut is a name that stays behind, and the rule that leaves it out. What lies below
// a directory that stays behind is not looked at.
type LeftOut struct {
	Path string `json:"path"`
	Dir  bool   `json:"dir,omitempty"`
	Rule
}

// Scan reads a directory as it is now. It tells what stays behind, also beside an error
// where it came so far. No link is followed; one that leads out of the directory is an
// error, as are devices, sockets, pipes, files that cannot be read or that change
// meanwhile. Nothing is read of a directory that is too large: the error is then a
// *TooLargeError.
func Scan(ctx context.Context, dir string, options Options) (Manifest, []LeftOut, error) {
	root, err := openTree(dir)
	if err != nil {
		return Manifest{}, nil, err
	}
	defer root.Close()
	w := &walker{ctx: ctx, root: root}
	judged := judgement{noGit: true}
	if !options.Data {
		judged.leavings = leavingRules()
	}
	switch {
	case options.Alone:
		judged.noGit = false
	case !options.Committed && !options.Data:
		if judged, w.base, err = outerRules(dir); err != nil {
			return Manifest{}, nil, err
		}
	}
	if err := w.walk("", judged); err != nil {
		return Manifest{}, w.left, err
	}
	slices.SortFunc(w.found, func(a, b found) int { return strings.Compare(a.entry.Path, b.entry.Path) })
	slices.SortFunc(w.left, func(a, b LeftOut) int { return strings.Compare(a.Path, b.Path) })
	most := options.BytesMax
	if most == 0 {
		most = BytesMaxDefault
	}
	if all := w.size(); all > most && !(options.Data && options.BytesMax == 0) {
		return Manifest{}, w.left, &TooLargeError{Bytes: all, Max: most, Largest: largest(w.found, LargestShown)}
	}
	if options.Fill != nil {
		if err := options.Fill(w.files()); err != nil {
			return Manifest{}, w.left, err
		}
	}
	m, err := w.read(options.Progress)
	if options.Data {
		m = m.Settled()
	}
	return m, w.left, err
}

func openTree(dir string) (*os.Root, error) {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		return nil, structs.NewError(structs.CodeInvalid, "tree.no_directory", "path", shown(dir))
	}
	root, openErr := os.OpenRoot(dir)
	if err = errors.Join(err, openErr); err != nil {
		return nil, structs.NewError(structs.CodeInvalid, "tree.directory", "path", shown(dir), "problem", systemSaid(firstOf(err))).Because(err)
	}
	return root, nil
}

func firstOf(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()[0]
	}
	return err
}

// found is an entry with what the system said of it when it was found.
type found struct {
	entry Entry
	info  fs.FileInfo
}

type walker struct {
	ctx   context.Context
	root  *os.Root
	base  string // of root below the outermost directory with rules; "" for that one itself
	found []found
	left  []LeftOut
}

// walk goes over one directory, "" for the root, and those below it.
func (w *walker) walk(dir string, judged judgement) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	opened, err := w.root.Open(orDot(dir))
	if err != nil {
		return unreadableFile(orDot(dir), err)
	}
	children, err := opened.ReadDir(-1)
	if err = errors.Join(err, opened.Close()); err != nil {
		return unreadableFile(orDot(dir), firstOf(err))
	}
	if judged, err = w.rulesOf(dir, children, judged); err != nil {
		return err
	}
	slices.SortFunc(children, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, child := range children {
		name := path.Join(dir, child.Name())
		info, err := w.root.Lstat(name)
		if err != nil {
			return changed(name, err)
		}
		rule := judged.decisive(path.Join(w.base, name), info.IsDir())
		if rule == nil && len(judged.leavings) > 0 && info.IsDir() && w.isAgents(name) {
			rule = &Rule{Text: agentMark}
		}
		if rule != nil && !rule.takes {
			w.left = append(w.left, LeftOut{Path: name, Dir: info.IsDir(), Rule: *rule})
			continue
		}
		if err := w.take(name, info); err != nil {
			return err
		}
		if info.IsDir() {
			if err := w.walk(name, judged); err != nil {
				return err
			}
		}
	}
	return nil
}

// isAgents reports whether a directory is the data directory of an agent.
func (w *walker) isAgents(dir string) bool {
	mark, err := w.root.Lstat(path.Join(dir, agentMark))
	if err != nil || !mark.Mode().IsRegular() {
		return false
	}
	keys, err := w.root.Lstat(path.Join(dir, agentKeys))
	return err == nil && keys.IsDir()
}

func orDot(dir string) string {
	if dir == "" {
		return "."
	}
	return dir
}

// rulesOf adds the ignore files of a directory to what is known.
func (w *walker) rulesOf(dir string, children []fs.DirEntry, judged judgement) (judgement, error) {
	var files [2]ruleFile
	for i, name := range []string{OwnIgnore, GitIgnore} {
		there := slices.ContainsFunc(children, func(c fs.DirEntry) bool { return c.Name() == name && c.Type().IsRegular() })
		if !there { // a link is not read, as git does not
			continue
		}
		data, err := w.readSmall(path.Join(dir, name))
		if err != nil {
			return judged, err
		}
		if i == 0 && dir == "" && only(data) {
			judged.git = nil
			judged.noGit = true
		}
		if i == 1 && judged.noGit {
			continue
		}
		files[i] = ruleFile{path.Join(w.base, dir), parseRules(path.Join(dir, name), data)}
	}
	return judged.with(files[0], files[1]), nil
}

// only reports whether an ignore file begins with the line that switches git's off.
func only(data []byte) bool {
	first, _, _ := bytes.Cut(data, []byte("\n"))
	return string(bytes.TrimRight(first, " \r")) == onlyMarker
}

func (w *walker) readSmall(name string) ([]byte, error) {
	file, err := w.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, unreadableFile(name, err)
	}
	defer file.Close()
	return readRules(name, file)
}

func readRules(name string, file io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(file, ignoreSizeMax+1))
	if err != nil {
		return nil, unreadableFile(name, err)
	}
	if len(data) > ignoreSizeMax {
		return nil, structs.NewError(structs.CodeTooLarge, "tree.ignore_too_large", "path", shown(name), "max", ignoreSizeMax)
	}
	return data, nil
}

// take adds one name to the tree.
func (w *walker) take(name string, info fs.FileInfo) error {
	if err := checkPath(name); err != nil {
		return err
	}
	if len(w.found) == EntriesMax {
		return structs.NewError(structs.CodeTooLarge, "tree.too_many", "max", EntriesMax)
	}
	entry := Entry{Path: name, Mode: uint32(info.Mode().Perm())}
	switch mode := info.Mode(); {
	case mode.IsRegular():
		entry.Kind = KindFile
	case mode.IsDir():
		entry.Kind = KindDir
	case mode.Type() == fs.ModeSymlink:
		target, err := w.root.Readlink(name)
		if err != nil {
			return changed(name, err)
		}
		if err := checkLink(name, target); err != nil {
			return err
		}
		entry.Kind, entry.Mode, entry.Target = KindLink, 0, target
	default:
		return structs.NewError(structs.CodeInvalid, "tree.special", "path", shown(name), "kind", specialKind(mode), "line", ignoreLine(name, false))
	}
	w.found = append(w.found, found{entry, info})
	return nil
}

// specialKind is the word of what is neither file nor directory nor link, of the
// catalogue behind "word.".
func specialKind(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeNamedPipe != 0:
		return "pipe"
	case mode&fs.ModeSocket != 0:
		return "socket"
	default:
		return "device_file"
	}
}

func (w *walker) size() int64 {
	var sum int64
	for i := range w.found {
		if w.found[i].entry.Kind == KindFile {
			sum += w.found[i].info.Size()
		}
	}
	return sum
}

// files are the paths of the files that were found.
func (w *walker) files() (names []string) {
	for i := range w.found {
		if w.found[i].entry.Kind == KindFile {
			names = append(names, w.found[i].entry.Path)
		}
	}
	return names
}

// read reads the files that were found.
func (w *walker) read(progress func(read, all int64)) (Manifest, error) {
	m := Manifest{Entries: make([]Entry, len(w.found))}
	for i := range w.found {
		m.Entries[i] = w.found[i].entry
	}
	if err := w.readAll(m.Entries, progress); err != nil {
		return Manifest{}, err
	}
	return m, m.Check()
}

// readersMax is how many files are read at once: to find where one is cut, and its
// digests, takes a processor longer than most disks take to read it.
const readersMax = 4

// readAll brings the chunks of all files, several files at once. The first failure ends
// it. progress is called by one goroutine at a time.
func (w *walker) readAll(entries []Entry, progress func(read, all int64)) error {
	ctx, stop := context.WithCancelCause(w.ctx)
	defer stop(nil)
	var (
		mu   sync.Mutex
		done int64
		next atomic.Int64
		busy sync.WaitGroup
	)
	all := w.size()
	for range min(readersMax, runtime.GOMAXPROCS(0)) {
		busy.Go(func() {
			cut, mine := newCutter(), *w
			mine.ctx = ctx
			for i := next.Add(1) - 1; i < int64(len(entries)) && ctx.Err() == nil; i = next.Add(1) - 1 {
				if entries[i].Kind != KindFile {
					continue
				}
				before := int64(0)
				chunks, err := mine.chunksOf(&mine.found[i], cut, func(read int64) {
					mu.Lock()
					defer mu.Unlock()
					done, before = done+read-before, read
					if progress != nil {
						progress(done, all)
					}
				})
				if err != nil {
					stop(err)
					return
				}
				entries[i].Chunks = chunks
			}
		})
	}
	busy.Wait()
	return context.Cause(ctx)
}

// chunksOf reads one file, which must stay as it was found. It tells how far it is.
func (w *walker) chunksOf(f *found, cut *cutter, told func(read int64)) (chunks []Chunk, err error) {
	name := f.entry.Path
	file, err := w.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, changed(name, err)
	}
	if err != nil {
		return nil, unreadableFile(name, err)
	}
	defer file.Close()
	same := func() error {
		now, err := file.Stat()
		if err != nil {
			return unreadableFile(name, err)
		}
		if !os.SameFile(now, f.info) || now.Size() != f.info.Size() || !now.ModTime().Equal(f.info.ModTime()) {
			return changed(name, nil)
		}
		return nil
	}
	if err := same(); err != nil {
		return nil, err
	}
	size := int64(0)
	err = cut.each(io.LimitReader(file, f.info.Size()+1), f.info.Size(), func(data []byte) error {
		size += int64(len(data))
		chunks = append(chunks, Chunk{Digest: DigestOf(data), Size: int64(len(data))})
		told(size)
		return w.ctx.Err()
	})
	if w.ctx.Err() != nil {
		return nil, w.ctx.Err()
	}
	if err != nil {
		return nil, unreadableFile(name, err)
	}
	if size != f.info.Size() {
		return nil, changed(name, nil)
	}
	return chunks, same()
}

func unreadableFile(name string, err error) error {
	return structs.NewError(structs.CodeInvalid, "tree.unreadable", "path", shown(name), "problem", systemSaid(err), "line", ignoreLine(name, false)).Because(err)
}

func changed(name string, err error) error {
	return structs.NewError(structs.CodeConflict, "tree.changed", "path", shown(name), "line", ignoreLine(name, false)).Because(err)
}

func leavingRules() (rules []Rule) {
	for _, leaving := range Leavings() {
		rules = append(rules, newRule(leaving, "", 0))
	}
	return rules
}

// outerRules are those that hold above dir: of the work tree of git that dir lies in, and
// what the tree's own .git leaves out. Where they leave out dir itself they do not hold,
// because whoever names a directory means it. base is dir below the work tree.
func outerRules(dir string) (judged judgement, base string, err error) {
	judged.leavings = leavingRules()
	real, err := filepath.Abs(dir)
	if err == nil {
		real, err = filepath.EvalSymlinks(real)
	}
	if err != nil {
		return judged, "", unreadableFile(dir, err)
	}
	top, ok := workTree(real)
	if !ok {
		return judged, "", nil
	}
	relative, err := filepath.Rel(top, real)
	if err != nil {
		return judged, "", unreadableFile(dir, err)
	}
	if relative != "." {
		base = filepath.ToSlash(relative)
	}
	within := judged
	at, below := top, ""
	files := []string{filepath.Join(top, ".git", "info", "exclude")}
	for part := range strings.SplitSeq(base, "/") {
		if base != "" {
			files = append(files, filepath.Join(at, GitIgnore))
			at = filepath.Join(at, part)
		}
	}
	for i, file := range files {
		rules, err := outerFile(real, file)
		if err != nil {
			return judged, "", err
		}
		if i > 1 {
			below = path.Join(below, strings.Split(base, "/")[i-2])
		}
		within = within.with(ruleFile{}, ruleFile{below, rules})
		if i > 0 {
			child := path.Join(below, strings.Split(base, "/")[i-1])
			if rule := lastOf(within.git, child, true); rule != nil && !rule.takes {
				return judged, base, nil
			}
		}
	}
	return within, base, nil
}

// workTree is the nearest directory, dir or above it, that has a .git.
func workTree(dir string) (string, bool) {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir, true
		}
		above := filepath.Dir(dir)
		if above == dir {
			return "", false
		}
		dir = above
	}
}

func outerFile(dir, name string) ([]Rule, error) {
	info, err := os.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return nil, nil
	}
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, unreadableFile(name, err)
	}
	defer file.Close()
	data, err := readRules(name, file)
	if err != nil {
		return nil, err
	}
	shown, err := filepath.Rel(dir, name)
	if err != nil {
		shown = name
	}
	return parseRules(filepath.ToSlash(shown), data), nil
}

package objects

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// gathersMax is how many files are read at once for a manifest.
const gathersMax = 4

// announced is how much an upload was said to bring.
type announced struct {
	files int
	bytes int64
}

// gatherer makes the manifest of files that came one by one.
type gatherer struct {
	*filesUpload
	done  *atomic.Int64
	ids   []string
	found []part
	wrong []structs.DataWrong
}

// gather makes the manifest of the files that came, when all are there. It may be asked
// again after any error and at any time.
func (s singles) gather(ctx context.Context, p *structs.DataPlace, id string, said announced, done, all *atomic.Int64) (*structs.DataReply, error) {
	u, err := s.filesUpload(p, id)
	if structs.CodeOf(err) == structs.CodeNotFound {
		return s.gathered(p, id)
	}
	if err != nil {
		return nil, err
	}
	defer u.close()
	open, err := u.shut(ctx)
	if err != nil {
		return nil, err
	}
	defer open()
	if data, err := readSmall(u.dir, manifestFile, tree.ManifestSizeMax); err == nil {
		m, err := tree.Decode(data)
		if err != nil {
			return nil, err
		}
		return gatheredReply(&m, tree.DigestOf(data)), s.believe(ctx, p, id, &m, tree.DigestOf(data))
	}
	g := &gatherer{filesUpload: u, done: done}
	if err := g.collect(said, all); err != nil {
		return nil, err
	}
	m, err := g.manifest(ctx)
	if err != nil {
		return nil, u.door.failed(err)
	}
	if len(g.wrong) > 0 {
		return nil, wrongFiles(g.wrong)
	}
	if err := g.tidy(&m); err != nil {
		return nil, u.door.failed(err)
	}
	data := m.Encode()
	digest := tree.DigestOf(data)
	if err := errors.Join(syncAll(u.tree), place(u.door.own, u.door.name+madeSuffix, []byte(id+" "+string(digest))), place(u.dir, manifestFile, data)); err != nil {
		return nil, u.door.failed(err)
	}
	return gatheredReply(&m, digest), s.believe(ctx, p, id, &m, digest)
}

func gatheredReply(m *tree.Manifest, digest tree.Digest) *structs.DataReply {
	return &structs.DataReply{Done: true, Digest: string(digest), Files: m.Files(), Bytes: m.Bytes(), All: m.Bytes()}
}

// gathered finds what was made of an upload that is not there any more: its version has
// its name, and whoever asked was not told.
func (s singles) gathered(p *structs.DataPlace, id string) (*structs.DataReply, error) {
	v, err := s.versionOf(p, p.Version)
	if err != nil {
		return nil, err
	}
	d, err := s.open(v, false)
	if err != nil {
		return nil, unknownUpload(id)
	}
	defer d.close()
	made, err := readSmall(d.own, d.name+madeSuffix, partMax)
	if err != nil {
		return nil, unknownUpload(id)
	}
	from, digest, _ := strings.Cut(string(made), " ")
	data, err := readSmall(d.own, d.name, tree.ManifestSizeMax)
	if err != nil || from != id || string(tree.DigestOf(data)) != digest {
		return nil, unknownUpload(id)
	}
	m, err := tree.Decode(data)
	if err != nil {
		return nil, err
	}
	return gatheredReply(&m, tree.Digest(digest)), nil
}

// believe has the journal say that the files of a manifest are whole, and shares with the
// earlier version what has not changed.
func (s singles) believe(ctx context.Context, p *structs.DataPlace, id string, m *tree.Manifest, digest tree.Digest) error {
	of := *p
	of.Digest = string(digest)
	u, err := s.upload(ctx, &of, id)
	if err != nil {
		return err
	}
	defer s.release(u)
	var files []int
	buffer := make([]byte, tree.ChunkSizeMax)
	for i := range m.Entries {
		entry := &m.Entries[i]
		if entry.Kind != tree.KindFile {
			continue
		}
		u.mu.Lock()
		filled := u.mu.filled[i]
		u.mu.Unlock()
		if filled {
			continue
		}
		if from, there := u.base.same(entry); there {
			if err := u.share(entry, from, buffer); err != nil {
				return u.door.failed(err)
			}
		}
		files = append(files, i)
	}
	if len(files) == 0 {
		return nil
	}
	if err := errors.Join(syncAll(u.tree), u.note(recordFile, files)); err != nil {
		return u.door.failed(err)
	}
	return nil
}

// share has a file that came be the same one as that of the earlier version. What came
// stays until the other one has been compared and has its name.
func (u *upload) share(entry, from *tree.Entry, buffer []byte) error {
	aside := entry.Path + ".nomadlike-aside"
	if len(path.Base(aside)) > tree.NameMax {
		return nil
	}
	if _, err := u.tree.Lstat(aside); err == nil {
		return nil // somebody's file has the name
	}
	if err := u.tree.Rename(entry.Path, aside); err != nil {
		return err
	}
	linked, err := u.link(entry, from, buffer, func(int64) {})
	if err != nil || !linked {
		return errors.Join(err, u.tree.Rename(aside, entry.Path))
	}
	return u.tree.Remove(aside)
}

// collect reads the records, and compares them with the list of what must be there, or
// with what was announced where there is none.
func (g *gatherer) collect(said announced, all *atomic.Int64) error {
	count, sum := 0, int64(0)
	err := g.each(func(id string, one *part) error {
		g.ids, g.found = append(g.ids, id), append(g.found, *one)
		if !one.Dir {
			count++
		}
		sum += one.Size
		if !one.whole() {
			g.fault(one.Path, structs.DataHalf)
		}
		return nil
	})
	if err != nil {
		return g.door.failed(err)
	}
	all.Store(sum)
	names, err := readSmall(g.dir, namesFile, structs.DataListMax)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return g.door.failed(err)
	}
	if len(names) > 0 {
		wanted, err := ParseSums(names)
		if err != nil {
			return err
		}
		for i := range g.found {
			one := &g.found[i]
			sum, listed := wanted[one.Path]
			delete(wanted, one.Path)
			switch {
			case one.Dir:
			case !listed:
				g.fault(one.Path, structs.DataExtra)
			case one.whole() && sum != one.SHA256:
				if err := g.again(i); err != nil {
					return g.door.failed(err)
				}
			}
		}
		for _, name := range slices.Sorted(keysOf(wanted)) {
			g.fault(name, structs.DataGone)
		}
	}
	if len(g.wrong) > 0 {
		return wrongFiles(g.wrong)
	}
	if count == 0 {
		return structs.NewError(structs.CodeConflict, "objects.files_none")
	}
	if len(names) == 0 && (count != said.files || sum != said.bytes) {
		return structs.NewError(structs.CodeConflict, "objects.files_missing", "count", count, "files", said.files,
			"size", structs.FormatSize(sum), "bytes", structs.FormatSize(said.bytes))
	}
	return nil
}

func keysOf(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for key := range m {
			if !yield(key) {
				return
			}
		}
	}
}

func (g *gatherer) fault(name, what string) {
	g.wrong = append(g.wrong, structs.DataWrong{Path: name, What: what})
}

// wrongFiles names files that are not as they have to be: the first one in the sentence,
// and as many as an answer may have beside it.
func wrongFiles(wrong []structs.DataWrong) error {
	e := structs.NewError(structs.CodeConflict, "objects.files_wrong", "count", len(wrong))
	for i := range wrong[:min(len(wrong), structs.DataWrongMax)] {
		e.Details = append(e.Details, *structs.NewError(structs.CodeConflict, "objects.wrong_"+wrong[i].What, "path", wrong[i].Path))
	}
	return e
}

// again has a file sent anew that has other bytes than it is said to have.
func (g *gatherer) again(i int) error {
	one := g.found[i]
	one.Offset, one.State, one.SHA256 = 0, nil, ""
	g.fault(one.Path, structs.DataChanged)
	return g.write(g.ids[i], &one)
}

// manifest reads the files, several at once.
func (g *gatherer) manifest(ctx context.Context) (tree.Manifest, error) {
	entries := make([]tree.Entry, len(g.found))
	broken := make([]bool, len(g.found))
	var (
		next atomic.Int64
		busy sync.WaitGroup
		mu   sync.Mutex
		err  error
	)
	for range min(gathersMax, runtime.GOMAXPROCS(0)) {
		busy.Go(func() {
			cut := tree.NewCutter()
			for i := next.Add(1) - 1; i < int64(len(g.found)) && ctx.Err() == nil; i = next.Add(1) - 1 {
				one, same, failure := g.entry(ctx, &g.found[i], cut)
				if failure != nil {
					mu.Lock()
					err = failure
					mu.Unlock()
					return
				}
				entries[i], broken[i] = one, !same
			}
		})
	}
	busy.Wait()
	if err = errors.Join(err, ctx.Err()); err != nil {
		return tree.Manifest{}, err
	}
	for i := range broken {
		if broken[i] {
			if err := g.again(i); err != nil {
				return tree.Manifest{}, err
			}
		}
	}
	if len(g.wrong) > 0 {
		return tree.Manifest{}, nil
	}
	m := tree.Manifest{Entries: withDirs(entries)}
	return m, m.Check()
}

// withDirs sorts entries, and adds the directories above them.
func withDirs(entries []tree.Entry) []tree.Entry {
	known := make(map[string]bool)
	for i := range entries {
		if entries[i].Kind == tree.KindDir {
			known[entries[i].Path] = true
		}
	}
	for i := range entries {
		for dir := path.Dir(entries[i].Path); dir != "." && !known[dir]; dir = path.Dir(dir) {
			known[dir] = true
			entries = append(entries, tree.Entry{Path: dir, Kind: tree.KindDir, Mode: 0o555})
		}
	}
	slices.SortFunc(entries, func(a, b tree.Entry) int { return strings.Compare(a.Path, b.Path) })
	return entries
}

// entry reads one file, and compares it with the digest of the bytes that came.
func (g *gatherer) entry(ctx context.Context, one *part, cut *tree.Cutter) (entry tree.Entry, same bool, err error) {
	entry = tree.Entry{Path: one.Path, Kind: tree.KindFile, Mode: 0o444}
	if one.Dir {
		entry.Kind, entry.Mode = tree.KindDir, 0o555
		return entry, true, nil
	}
	if one.Executable {
		entry.Mode = 0o555
	}
	file, info, err := openRegular(g.tree, one.Path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotRegular) || err == nil && info.Size() != one.Size {
		if err == nil {
			err = file.Close()
		} else {
			err = nil
		}
		return entry, false, err
	}
	if err != nil {
		return entry, false, err
	}
	defer file.Close()
	sum := sha256.New()
	entry.Chunks, err = cut.Chunks(io.LimitReader(file, one.Size), one.Size, func(data []byte) error {
		_, _ = sum.Write(data) // a hash takes everything
		g.done.Add(int64(len(data)))
		return ctx.Err()
	})
	if err != nil {
		return entry, false, err
	}
	if hex.EncodeToString(sum.Sum(nil)) != one.SHA256 {
		return entry, false, nil
	}
	return entry, true, file.Chmod(os.FileMode(entry.Mode))
}

// tidy removes what is no name of the manifest: of files that were forgotten.
func (g *gatherer) tidy(m *tree.Manifest) error {
	known := make(map[string]bool, len(m.Entries))
	for i := range m.Entries {
		known[m.Entries[i].Path] = true
		if m.Entries[i].Kind == tree.KindDir {
			if err := g.tree.MkdirAll(m.Entries[i].Path, 0o700); err != nil {
				return err
			}
		}
	}
	var strange []string
	err := fs.WalkDir(g.tree.FS(), ".", func(at string, entry fs.DirEntry, err error) error {
		if err != nil || at == "." || known[at] {
			return err
		}
		strange = append(strange, at)
		if entry.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	for _, name := range strange {
		err = errors.Join(err, g.tree.RemoveAll(name))
	}
	return err
}

// ParseSums reads a list of files with their digests, as sha256sum prints it.
func ParseSums(data []byte) (map[string]string, error) {
	sums := make(map[string]string)
	for number, line := range bytes.Split(data, []byte("\n")) {
		if len(line) == 0 {
			continue
		}
		text, escaped := strings.CutPrefix(string(line), `\`)
		wrong := structs.NewError(structs.CodeInvalid, "objects.names_line", "line", number+1)
		if len(text) < 2*sha256.Size+3 || text[2*sha256.Size] != ' ' || strings.Trim(text[:2*sha256.Size], "0123456789abcdef") != "" {
			return nil, wrong
		}
		if kind := text[2*sha256.Size+1]; kind != ' ' && kind != '*' {
			return nil, wrong
		}
		name := text[2*sha256.Size+2:]
		if escaped {
			name = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r").Replace(name)
		}
		name = strings.TrimPrefix(name, "./")
		if filePathProblem(name) != nil {
			return nil, wrong
		}
		sums[name] = text[:2*sha256.Size]
	}
	return sums, nil
}

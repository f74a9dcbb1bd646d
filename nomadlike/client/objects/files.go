package objects

import (
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"syscall"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// Programs that do not know manifests send files one by one, each from its beginning to
// its end. Bytes go to their place in the version that is being made; of each file there
// is a record of how far it is:
//
//	up-ID/tree/PATH   the bytes
//	up-ID/parts/ID    the record of a file: what it is to be, how far it is, and its digest so far
//	up-ID/names       the list of files that must be there
//
// A record is written anew, beside, after the bytes that it tells of have reached the
// disk. When all files are whole gather makes the manifest, and from then on it is an
// upload like any other.
const (
	partsDir   = "parts"
	namesFile  = "names"
	partMax    = 16 << 10 // bytes of a record
	madeSuffix = ".made"  // of the file that says which upload a version was made of
)

var partID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// PartID is the name of a file in an upload: the same path has the same one, whoever asks.
func PartID(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:16])
}

// part is the record of a file.
type part struct {
	Path       string `json:"path"`
	Size       int64  `json:"size"`
	Wanted     string `json:"wanted,omitempty"` // SHA-256 that it is to have
	Executable bool   `json:"executable,omitempty"`
	Dir        bool   `json:"dir,omitempty"`
	Offset     int64  `json:"offset"`
	State      []byte `json:"state,omitempty"`  // of the digest of what is there
	SHA256     string `json:"sha256,omitempty"` // of the whole file
}

func (p *part) whole() bool { return p.Offset == p.Size }

func (p *part) told(id string) *structs.DataFile {
	return &structs.DataFile{ID: id, Path: p.Path, Size: p.Size, Offset: p.Offset, SHA256: p.Wanted, Executable: p.Executable, Dir: p.Dir}
}

// digest is the hash of the bytes that are there.
func (p *part) digest() (hash.Hash, error) {
	sum := sha256.New()
	if len(p.State) == 0 {
		return sum, nil
	}
	return sum, sum.(encoding.BinaryUnmarshaler).UnmarshalBinary(p.State)
}

// filesUpload is an upload whose files come one by one, as one request sees it.
type filesUpload struct {
	door  *door
	dir   *os.Root // up-ID
	tree  *os.Root
	parts *os.Root
	tally *tally
}

// singles is the part of a store that takes files one by one.
type singles struct{ *Store }

func (u *filesUpload) close() {
	for _, root := range []*os.Root{u.parts, u.tree, u.dir} {
		if root != nil {
			_ = root.Close() // what counts was synced
		}
	}
	u.door.close()
}

// openFilesUpload begins an upload whose files come one by one.
func (s singles) openFilesUpload(ask *structs.DataAsk) error {
	if !uploadID.MatchString(ask.Upload) {
		return unknownUpload(ask.Upload)
	}
	v, err := s.versionOf(&ask.Place, ask.Place.Version)
	if err != nil {
		return err
	}
	d, err := s.open(v, true)
	if err != nil {
		return err
	}
	defer d.close()
	d.sweep(s.config.Now(), ask.Upload, s.config.Log)
	up := uploadPrefix + ask.Upload
	if _, err := d.own.Lstat(path.Join(up, partsDir)); err == nil {
		d.touch(ask.Upload, s.config.Now())
		return nil
	}
	if err := s.room(d, ask.Bytes); err != nil {
		return err
	}
	for _, name := range []string{up, path.Join(up, treeDir), path.Join(up, partsDir)} {
		if err := d.own.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return v.failed(err)
		}
	}
	if err := errors.Join(syncDir(d.own, up), syncDir(d.own, ".")); err != nil {
		return v.failed(err)
	}
	return nil
}

// filesUpload opens an upload whose files come one by one. The caller closes it.
func (s singles) filesUpload(p *structs.DataPlace, id string) (*filesUpload, error) {
	if !uploadID.MatchString(id) {
		return nil, unknownUpload(id)
	}
	v, err := s.versionOf(p, p.Version)
	if err != nil {
		return nil, err
	}
	d, err := s.open(v, false)
	if structs.CodeOf(err) == structs.CodeNotFound {
		return nil, unknownUpload(id)
	}
	if err != nil {
		return nil, err
	}
	u := &filesUpload{door: d}
	if u.dir, err = d.own.OpenRoot(uploadPrefix + id); err == nil {
		u.parts, err = u.dir.OpenRoot(partsDir)
	}
	if err == nil {
		u.tree, err = u.dir.OpenRoot(treeDir)
	}
	if err != nil {
		u.close()
		if errors.Is(err, fs.ErrNotExist) {
			return nil, unknownUpload(id)
		}
		return nil, v.failed(err)
	}
	info, err := d.own.Lstat(uploadPrefix + id)
	if err == nil {
		u.tally = s.tallyOf(v.place.Path+" "+id, info)
		err = u.load()
	}
	if err != nil {
		u.close()
		return nil, v.failed(err)
	}
	return u, nil
}

// ids lists the names of the records, sorted.
func (u *filesUpload) ids() ([]string, error) {
	dir, err := u.parts.Open(".")
	if err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	if err = errors.Join(err, dir.Close()); err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !partID.MatchString(name) })
	slices.Sort(names)
	return names, nil
}

func (u *filesUpload) each(do func(id string, p *part) error) error {
	names, err := u.ids()
	if err != nil {
		return err
	}
	for _, id := range names {
		p, err := u.read(id)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was removed meanwhile
		}
		if err == nil {
			err = do(id, p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// read reads the record of a file.
func (u *filesUpload) read(id string) (*part, error) {
	data, err := readSmall(u.parts, id, partMax)
	if err != nil {
		return nil, err
	}
	p := new(part)
	if err := json.Unmarshal(data, p); err != nil || PartID(p.Path) != id || p.Offset < 0 || p.Offset > p.Size {
		return nil, &fs.PathError{Op: "read", Path: id, Err: errors.Join(errors.New("not the record of a file"), err)}
	}
	return p, nil
}

func (u *filesUpload) write(id string, p *part) error {
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return place(u.parts, id, data)
}

// noFile says that a file was not begun, or was forgotten.
func noFile(id string) error {
	return structs.NewError(structs.CodeNotFound, "objects.no_file", "id", clip(id))
}

// answerFile answers what is asked about single files.
func (s singles) answerFile(ask *structs.DataAsk) (*structs.DataReply, error) {
	u, err := s.filesUpload(&ask.Place, ask.Upload)
	if err != nil {
		return nil, err
	}
	defer u.close()
	if ask.What == structs.DataAskFiles {
		return u.list(ask)
	}
	if ask.File == nil {
		return nil, noFile("")
	}
	if ask.What == structs.DataAskFile {
		file, err := s.beginFile(u, ask)
		return &structs.DataReply{File: file}, err
	}
	id := ask.File.ID
	if !partID.MatchString(id) {
		return nil, noFile(id)
	}
	if ask.What == structs.DataAskOffset {
		p, err := u.read(id)
		if err != nil {
			return nil, u.missed(id, err)
		}
		return &structs.DataReply{File: p.told(id)}, nil
	}
	leave, err := u.enter(id, id)
	if err != nil {
		return nil, err
	}
	defer leave()
	p, err := u.read(id)
	if err != nil {
		return nil, u.missed(id, err)
	}
	if ask.What == structs.DataAskDrop {
		return &structs.DataReply{Done: true}, u.forget(id, p)
	}
	file, err := s.append(u, id, p, ask.Offset, ask.Data)
	return &structs.DataReply{File: file}, err
}

func (u *filesUpload) missed(id string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return noFile(id)
	}
	return u.door.failed(err)
}

// list tells files by their ids, those behind the one that was named.
func (u *filesUpload) list(ask *structs.DataAsk) (*structs.DataReply, error) {
	names, err := u.ids()
	if err != nil {
		return nil, u.door.failed(err)
	}
	after := ""
	if ask.File != nil {
		after = ask.File.ID
	}
	at, there := slices.BinarySearch(names, after)
	if there {
		at++
	}
	reply := new(structs.DataReply)
	for _, id := range names[at:] {
		if len(reply.List) == structs.DataFilesPage {
			break
		}
		if p, err := u.read(id); err == nil {
			reply.List = append(reply.List, *p.told(id))
		}
	}
	reply.Done = at+len(reply.List) >= len(names)
	return reply, nil
}

// filePathProblem refuses what cannot be the path of a file that is sent by itself.
func filePathProblem(name string) error {
	if !utf8.ValidString(name) {
		return structs.NewError(structs.CodeInvalid, "objects.file_utf8")
	}
	return tree.CheckPath(name)
}

// beginFile makes a file, with the bytes that came along, or tells how far it is.
func (s singles) beginFile(u *filesUpload, ask *structs.DataAsk) (*structs.DataFile, error) {
	file := ask.File
	if err := filePathProblem(file.Path); err != nil {
		return nil, err
	}
	if file.Size < 0 || file.Size > structs.DataBytesMax || file.Dir && file.Size > 0 {
		return nil, structs.NewError(structs.CodeInvalid, "objects.file_size", "path", file.Path)
	}
	id := PartID(file.Path)
	leave, err := u.enter(id, file.Path)
	if err != nil {
		return nil, err
	}
	defer leave()
	p, err := u.read(id)
	switch {
	case err == nil:
		if p.Size != file.Size || p.Wanted != file.SHA256 || p.Executable != file.Executable || p.Dir != file.Dir {
			return nil, structs.NewError(structs.CodeConflict, "objects.file_other", "path", file.Path, "size", structs.FormatSize(p.Size))
		}
		if p.Offset == 0 && len(ask.Data) > 0 {
			return s.append(u, id, p, 0, ask.Data)
		}
		return p.told(id), nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, u.door.failed(err)
	}
	p = &part{Path: file.Path, Size: file.Size, Wanted: file.SHA256, Executable: file.Executable, Dir: file.Dir}
	if err := u.reserve(p, ask); err != nil {
		return nil, err
	}
	kept := false
	defer func() {
		if !kept {
			u.tally.Lock()
			defer u.tally.Unlock()
			u.tally.remove(p)
		}
	}()
	if err := s.room(u.door, file.Size); err != nil {
		return nil, err
	}
	if err := u.make(p); err != nil {
		return nil, err
	}
	told, err := s.append(u, id, p, 0, ask.Data)
	kept = err == nil
	return told, err
}

// make makes the file itself, with the directories above it.
func (u *filesUpload) make(p *part) error {
	dir := path.Dir(p.Path)
	if p.Dir {
		dir = p.Path
	}
	inTheWay := func(err error) error {
		if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.EISDIR) || errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.ELOOP) {
			return structs.NewError(structs.CodeConflict, "objects.file_in_the_way", "path", p.Path)
		}
		return u.door.failed(err)
	}
	if err := u.tree.MkdirAll(dir, 0o700); err != nil {
		return inTheWay(err)
	}
	if info, err := u.tree.Stat(dir); err != nil || !info.IsDir() {
		return inTheWay(errors.Join(err, syscall.ENOTDIR))
	}
	if !p.Dir {
		file, err := u.tree.OpenFile(p.Path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
		if err == nil {
			err = file.Close()
		}
		if err != nil {
			return inTheWay(err)
		}
	}
	return u.syncDirs(dir, !p.Dir)
}

// syncDirs has a directory, and those above it that are new, reach the disk.
func (u *filesUpload) syncDirs(dir string, changed bool) error {
	for at := dir; ; at = path.Dir(at) {
		u.tally.Lock()
		known := u.tally.dirs[at]
		u.tally.Unlock()
		if !known || changed && at == dir {
			if err := syncDir(u.tree, at); err != nil {
				return u.door.failed(err)
			}
			u.tally.Lock()
			u.tally.dirs[at] = true
			u.tally.Unlock()
		}
		if at == "." || known && at != dir {
			return nil
		}
	}
}

// append keeps bytes of a file, which are on the disk when it returns.
func (s singles) append(u *filesUpload, id string, p *part, offset int64, data []byte) (*structs.DataFile, error) {
	switch {
	case offset != p.Offset:
		return nil, structs.NewError(structs.CodeConflict, "objects.offset", "path", p.Path, "offset", p.Offset, "given", offset)
	case int64(len(data)) > p.Size-p.Offset:
		return nil, structs.NewError(structs.CodeTooLarge, "objects.file_over", "path", p.Path, "size", structs.FormatSize(p.Size))
	}
	if err := s.room(u.door, int64(len(data))); err != nil {
		return nil, err
	}
	sum, err := p.digest()
	if err != nil {
		return nil, u.door.failed(err)
	}
	next := *p
	next.Offset += int64(len(data))
	if !p.Dir && len(data) > 0 {
		file, err := u.tree.OpenFile(p.Path, os.O_WRONLY|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, u.door.failed(err)
		}
		_, err = file.WriteAt(data, p.Offset)
		if err == nil && next.whole() {
			err = file.Truncate(p.Size)
		}
		if err == nil {
			err = file.Sync()
		}
		if err = errors.Join(err, file.Close()); err != nil {
			return nil, u.door.failed(err)
		}
	}
	_, _ = sum.Write(data) // a hash takes everything
	if next.State, err = sum.(encoding.BinaryMarshaler).MarshalBinary(); err != nil {
		return nil, u.door.failed(err)
	}
	if next.whole() {
		next.State, next.SHA256 = nil, hex.EncodeToString(sum.Sum(nil))
		if p.Dir {
			next.SHA256 = ""
		} else if p.Wanted != "" && p.Wanted != next.SHA256 {
			next.Offset, next.SHA256 = 0, ""
			if err := u.write(id, &next); err != nil {
				return nil, u.door.failed(err)
			}
			return nil, structs.NewError(structs.CodeConflict, "objects.file_digest", "path", p.Path, "offset", 0)
		}
	}
	if err := u.write(id, &next); err != nil {
		return nil, u.door.failed(err)
	}
	return next.told(id), nil
}

// forget removes a file with its record.
func (u *filesUpload) forget(id string, p *part) error {
	err := u.parts.Remove(id)
	if err == nil {
		err = syncDir(u.parts, ".")
	}
	if err == nil {
		if err = u.tree.Remove(p.Path); errors.Is(err, fs.ErrNotExist) || p.Dir { // others may lie in a directory
			err = nil
		}
	}
	if err != nil {
		return u.door.failed(err)
	}
	u.tally.Lock()
	defer u.tally.Unlock()
	u.tally.remove(p)
	return nil
}

// takeNames takes a piece of the list of files that must be there.
func (s singles) takeNames(ask *structs.DataAsk) error {
	if ask.Offset < 0 || ask.Offset+int64(len(ask.Data)) > structs.DataListMax {
		return structs.NewError(structs.CodeTooLarge, "objects.names_large", "max", structs.FormatSize(structs.DataListMax))
	}
	u, err := s.filesUpload(&ask.Place, ask.Upload)
	if err != nil {
		return err
	}
	defer u.close()
	if ask.Offset == 0 {
		if err := u.dir.Remove(namesFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return u.door.failed(err)
		}
	}
	if err := writeAt(u.dir, namesFile, ask.Offset, ask.Data); err != nil {
		return u.door.failed(err)
	}
	return nil
}

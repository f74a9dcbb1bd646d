package service

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"nomadlike/internal/beneath"
	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/client/words"
	"nomadlike/nomadlike/client/workspace"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// fileChunkBytes is how much of a file is sent at a time.
const fileChunkBytes = 256 << 10

// Files answers Alloc.Files, as long as the allocation's directory is kept. Only
// servers may call; they have authorised the user. Nothing outside of the two
// directories is read, whatever links the job has made there. Errors are
// *structs.Error, or send's own.
func (s *Service) Files(ctx context.Context, caller Caller, request *structs.FileRequest, send func(*structs.FileChunk) error) error {
	if caller.Role != RoleServer || !driver.ValidTaskID(alloc.TaskID(request.AllocID)) {
		return fileUnknown(request.Path)
	}
	name := path.Clean("/" + request.Path)[1:]
	if len(request.Path) > structs.FilePathMax || strings.ContainsRune(request.Path, 0) {
		return fileUnknown(name)
	}
	if _, err := os.Stat(s.Layout.Alloc(request.AllocID)); err != nil {
		return structs.NewError(structs.CodeNotFound, "client.alloc_unknown", "alloc", request.AllocID)
	}
	if name == "" {
		return s.listTop(request, send)
	}
	top, below, _ := strings.Cut(name, "/")
	root, err := s.openTop(request.AllocID, top)
	if err != nil {
		return fileFailed(name, err)
	}
	defer root.Close()
	if below == "" {
		below = "."
	}
	f, err := root.OpenFile(below, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe must not hold the agent up
	if err != nil {
		return fileFailed(name, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fileFailed(name, err)
	}
	entry := entryOf(path.Base(name), info)
	switch {
	case info.IsDir() && !request.List:
		return structs.NewError(structs.CodeConflict, "client.file_directory", "path", name)
	case info.IsDir():
		return listDir(root, below, f, &entry, send)
	case request.List && (!request.Digest || !info.Mode().IsRegular()):
		return send(&structs.FileChunk{Entry: &entry, EOF: true})
	case !info.Mode().IsRegular():
		return fileUnknown(name)
	}
	return sendFile(ctx, f, request, &entry, send)
}

func fileUnknown(name string) error {
	return structs.NewError(structs.CodeNotFound, "client.file_unknown", "path", name)
}

// fileFailed reports what is not there, or leads out of the directory, from what
// cannot be read.
func fileFailed(name string, err error) error {
	var told *structs.Error
	var file *fs.PathError
	switch {
	case errors.As(err, &told):
		return err
	case errors.Is(err, fs.ErrNotExist), errors.As(err, &file) && strings.Contains(file.Err.Error(), "escapes"),
		errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENXIO), errors.Is(err, syscall.ENAMETOOLONG):
		return fileUnknown(name)
	}
	return structs.NewError(structs.CodeUnavailable, "client.file_read", "path", name, "cause", words.Cause(err)).Because(err)
}

// openTop opens one of the directories that an allocation shows.
func (s *Service) openTop(id, top string) (*os.Root, error) {
	switch top {
	case structs.FilesLogs:
		return beneath.Root(s.Layout.Root, s.Layout.Below(s.Layout.Logs(id)))
	case structs.FilesOutputs:
		place, err := s.Layout.ReadOutput(id)
		if err != nil {
			return nil, err
		}
		if !workspace.ServesOutput(s.Storages, place.Root) {
			return nil, fs.ErrNotExist // no storage of this node, or none any more
		}
		below, err := filepath.Rel(place.Root, place.Path)
		if err != nil {
			return nil, err
		}
		root, err := os.OpenRoot(place.Root)
		if err != nil {
			return nil, err
		}
		defer root.Close()
		return root.OpenRoot(below)
	}
	return nil, fs.ErrNotExist
}

// listTop lists the directories that there are.
func (s *Service) listTop(request *structs.FileRequest, send func(*structs.FileChunk) error) error {
	if !request.List {
		return structs.NewError(structs.CodeConflict, "client.file_directory", "path", "/")
	}
	chunk := structs.FileChunk{Entry: &structs.FileEntry{Dir: true}, EOF: true}
	for _, top := range []string{structs.FilesLogs, structs.FilesOutputs} {
		root, err := s.openTop(request.AllocID, top)
		if err != nil {
			continue
		}
		if info, err := root.Stat("."); err == nil {
			chunk.Entries = append(chunk.Entries, entryOf(top, info))
		}
		_ = root.Close() // opened for reading
	}
	return send(&chunk)
}

func entryOf(name string, info fs.FileInfo) structs.FileEntry {
	e := structs.FileEntry{Name: name, Dir: info.IsDir(), Size: info.Size(), Modified: structs.At(info.ModTime())}
	e.Link = !e.Dir && !info.Mode().IsRegular()
	if e.Dir {
		e.Size = 0
	}
	return e
}

// listDir sends the entries of a directory.
func listDir(root *os.Root, dir string, f *os.File, entry *structs.FileEntry, send func(*structs.FileChunk) error) error {
	names, err := f.Readdirnames(structs.FileEntriesMax + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return fileFailed(dir, err)
	}
	chunk := structs.FileChunk{Entry: entry, More: len(names) > structs.FileEntriesMax, EOF: true}
	for _, name := range names[:min(len(names), structs.FileEntriesMax)] {
		info, err := root.Lstat(path.Join(dir, name))
		if err != nil {
			continue // it is gone
		}
		chunk.Entries = append(chunk.Entries, entryOf(name, info))
	}
	slices.SortFunc(chunk.Entries, func(a, b structs.FileEntry) int { return cmp.Compare(a.Name, b.Name) })
	return send(&chunk)
}

// sendFile sends the asked part of a file, as long as it was when it was opened.
func sendFile(ctx context.Context, f *os.File, request *structs.FileRequest, entry *structs.FileEntry, send func(*structs.FileChunk) error) error {
	at := request.Offset
	if at < 0 {
		at = max(entry.Size+at, 0)
	}
	at = min(at, entry.Size)
	end := entry.Size
	if request.Limit > 0 && request.Limit < end-at {
		end = at + request.Limit
	}
	buffer := make([]byte, fileChunkBytes)
	first := structs.FileChunk{Entry: entry, Offset: at, EOF: request.List}
	if request.Digest && end-at <= structs.FileDigestMax {
		sum := sha256.New()
		err := readRange(ctx, f, at, end, buffer, func(data []byte) error { sum.Write(data); return nil })
		if err != nil {
			return fileFailed(request.Path, err)
		}
		first.SHA256 = hex.EncodeToString(sum.Sum(nil))
	}
	if err := send(&first); err != nil || request.List {
		return err
	}
	var unsent error
	err := readRange(ctx, f, at, end, buffer, func(data []byte) error {
		unsent = send(&structs.FileChunk{Data: data})
		return unsent
	})
	switch {
	case unsent != nil:
		return unsent
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fileFailed(request.Path, err)
	}
	return send(&structs.FileChunk{EOF: true})
}

// readRange reads a file from one byte to before another.
func readRange(ctx context.Context, f *os.File, at, end int64, buffer []byte, each func([]byte) error) error {
	for at < end {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		n, err := f.ReadAt(buffer[:min(int64(len(buffer)), end-at)], at)
		if n == 0 {
			if err == nil || errors.Is(err, io.EOF) { // it became shorter: its length was told already
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		if err := each(buffer[:n]); err != nil {
			return err
		}
		at += int64(n)
	}
	return nil
}

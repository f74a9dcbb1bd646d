package httpapi

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"unicode/utf8"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// archiver writes one format. Each call of file is followed by the file's bytes.
type archiver interface {
	dir(name string, mode uint32) error
	link(name, target string) error
	file(name string, mode uint32, size int64) (io.Writer, error)
	Close() error
}

// archive answers data.archive. Its length is not known before its end; one that breaks
// off has no end, which whoever unpacks it is told.
func (h *dataFiles) archive(r *front.Request, known *structs.DataObject) error {
	o, err := h.open(r, known)
	if err != nil {
		return err
	}
	if o.entry != nil && o.entry.Kind != tree.KindDir {
		return structs.NewError(structs.CodeInvalid, "agent.data_no_dir", "path", shownName(o.path))
	}
	q := front.Query{R: r}
	format := q.Text("format")
	if format != "" && format != "zip" && format != "tar" {
		q.Refuse("format", format)
	}
	if q.Err != nil {
		return q.Err
	}
	select {
	case h.streams <- struct{}{}:
		defer func() { <-h.streams }()
	default:
		return structs.NewError(structs.CodeUnavailable, "agent.data_downloads", "max", api.DataArchiveMax)
	}
	ctx, end := h.whileValid(r)
	defer end()
	entries := o.manifest.Below(o.path)
	// What is damaged at once is a refusal, and not half a file.
	if err := h.firstByte(ctx, r, o, entries); err != nil {
		return err
	}
	ending, media := ".zip", "application/zip"
	if format == "tar" {
		ending, media = ".tar", "application/x-tar"
	}
	head := r.Writer.Header()
	head.Set("Content-Type", media)
	head.Set("Content-Security-Policy", inert)
	head.Set("Content-Disposition", attachment(archiveName(known, o, ending)))
	r.Writer.WriteHeader(http.StatusOK)
	buffer := bufio.NewWriterSize(lineSink{newLineWriter(r.Writer)}, 256<<10)
	var to archiver = &zipArchive{Writer: zip.NewWriter(buffer), taken: make(map[string]bool), dirs: map[string]string{".": ""}}
	if format == "tar" {
		to = &tarArchive{tar.NewWriter(buffer)}
	}
	if err = h.pack(ctx, r, o, entries, to); err == nil {
		err = buffer.Flush()
	}
	if err != nil {
		h.log.Debug("a download of named data broke off", "error", err)
		panic(http.ErrAbortHandler) // the reader must not take it for whole
	}
	return nil
}

// lineSink writes through a lineWriter, which drops readers that stall.
type lineSink struct{ *lineWriter }

func (s lineSink) Write(data []byte) (int, error) { return len(data), s.add(data) }

// firstByte reads the first piece of the first file that has any.
func (h *dataFiles) firstByte(ctx context.Context, r *front.Request, o *opened, entries []tree.Entry) error {
	for i := range entries {
		if size := entries[i].Size(); size > 0 {
			_, err := h.firstPiece(ctx, r, o, piecesOf(&entries[i], 0, 1))
			return err
		}
	}
	return nil
}

func (h *dataFiles) pack(ctx context.Context, r *front.Request, o *opened, entries []tree.Entry, to archiver) error {
	skip := 0
	if o.path != "" {
		skip = len(o.path) + 1
	}
	for i := range entries {
		entry := &entries[i]
		name := entry.Path[skip:]
		var err error
		switch entry.Kind {
		case tree.KindDir:
			err = to.dir(name, entry.Mode)
		case tree.KindLink:
			err = to.link(name, entry.Target)
		case tree.KindFile:
			err = h.packFile(ctx, r, o, entry, name, to)
		}
		if err != nil {
			return err
		}
	}
	return to.Close()
}

func (h *dataFiles) packFile(ctx context.Context, r *front.Request, o *opened, entry *tree.Entry, name string, to archiver) error {
	out, err := to.file(name, entry.Mode, entry.Size())
	if err != nil {
		return err
	}
	for _, p := range piecesOf(entry, 0, entry.Size()) {
		err := func() error {
			done, err := h.bodies.turn(r)
			if err != nil {
				return err
			}
			defer done()
			data, err := h.fetch(ctx, o, p)
			if err != nil {
				return err
			}
			_, err = out.Write(data)
			return err
		}()
		if err != nil {
			return err
		}
	}
	return nil
}

// tarArchive keeps names as they are: what reads it knows that they are bytes.
type tarArchive struct{ *tar.Writer }

func (a *tarArchive) head(name string, kind byte, mode uint32, size int64, target string) error {
	return a.WriteHeader(&tar.Header{Name: name, Typeflag: kind, Mode: int64(mode & 0o777), Size: size, Linkname: target, Format: tar.FormatPAX})
}

func (a *tarArchive) dir(name string, mode uint32) error {
	return a.head(name+"/", tar.TypeDir, mode|0o700, 0, "") // so that what is in it can be unpacked
}

func (a *tarArchive) link(name, target string) error {
	return a.head(name, tar.TypeSymlink, 0o777, 0, target)
}

func (a *tarArchive) file(name string, mode uint32, size int64) (io.Writer, error) {
	return a, a.head(name, tar.TypeReg, mode|0o200, size, "")
}

// zipArchive spells names so that no system takes one for a place elsewhere, or for a
// device, and two that would be one keep apart. Files are not pressed: most data is
// already.
type zipArchive struct {
	*zip.Writer
	taken map[string]bool   // names in lower case
	dirs  map[string]string // how directories are spelled, by what they are called
}

func (a *zipArchive) create(name string, mode, kind uint32) (io.Writer, error) {
	spelled := a.free(path.Join(a.dirs[path.Dir(name)], zipName(path.Base(name))))
	if kind == zipDir {
		a.dirs[name] = spelled
	}
	head := &zip.FileHeader{Name: spelled, Method: zip.Store}
	const unix, shift = 3 << 8, 16
	head.CreatorVersion, head.ExternalAttrs = unix, (kind|mode&0o777)<<shift
	if kind == zipDir {
		head.Name += "/"
	}
	return a.CreateHeader(head)
}

// Kinds of files as zip has them from Unix.
const (
	zipDir  = 0o040000
	zipFile = 0o100000
	zipLink = 0o120000
)

func (a *zipArchive) dir(name string, mode uint32) error {
	_, err := a.create(name, mode|0o700, zipDir)
	return err
}

func (a *zipArchive) link(name, target string) error {
	out, err := a.create(name, 0o777, zipLink)
	if err == nil {
		_, err = io.WriteString(out, zipTarget(target))
	}
	return err
}

func (a *zipArchive) file(name string, mode uint32, _ int64) (io.Writer, error) {
	return a.create(name, mode|0o200, zipFile)
}

// free is the name, or one beside it, where another one differs from it in nothing but
// capitals.
func (a *zipArchive) free(name string) string {
	free := name
	for n := 2; a.taken[strings.ToLower(free)]; n++ {
		free = fmt.Sprintf("%s%%%d", name, n)
	}
	a.taken[strings.ToLower(free)] = true
	return free
}

// zipName spells one name for systems of every kind: bytes that are no text, and what
// Windows takes for a part of a path or for a device, as %XX.
func zipName(name string) string {
	var out strings.Builder
	stem, _, _ := strings.Cut(strings.ToUpper(name), ".")
	reserved := windowsDevices[stem]
	for at := 0; at < len(name); {
		r, width := utf8.DecodeRuneInString(name[at:])
		last := at+width == len(name)
		if r == utf8.RuneError && width == 1 || r < ' ' || r == 0x7f || strings.ContainsRune(`\:*?"<>|%`, r) || last && (r == '.' || r == ' ') || reserved && at == 0 {
			for _, b := range []byte(name[at : at+width]) {
				fmt.Fprintf(&out, "%%%02X", b)
			}
		} else {
			out.WriteString(name[at : at+width])
		}
		at += width
	}
	return out.String()
}

// zipTarget spells what a link says as the names in it are spelled.
func zipTarget(target string) string {
	parts := strings.Split(target, "/")
	for i, part := range parts {
		if part != "" && part != "." && part != ".." {
			parts[i] = zipName(part)
		}
	}
	return strings.Join(parts, "/")
}

var windowsDevices = func() map[string]bool {
	names := map[string]bool{"CON": true, "PRN": true, "AUX": true, "NUL": true}
	for i := '1'; i <= '9'; i++ {
		names["COM"+string(i)], names["LPT"+string(i)] = true, true
	}
	return names
}()

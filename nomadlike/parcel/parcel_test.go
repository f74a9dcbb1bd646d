package parcel

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"nomadlike/internal/golden"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// given is what the tests pack.
type given struct {
	Entry
	data string
}

func file(name, data string) given {
	return given{Entry{Path: name, Kind: KindFile, Mode: 0o644, Size: int64(len(data))}, data}
}

func dir(name string) given { return given{Entry{Path: name, Kind: KindDir, Mode: 0o755}, ""} }

// sampleCode is a small tree, with what trees may have: modes, a link, an empty directory,
// a name that is no UTF-8.
func sampleCode() (tree.Manifest, []given) {
	data := "print(1)\n"
	m := tree.Manifest{Entries: []tree.Entry{
		{Path: "empty", Kind: tree.KindDir, Mode: 0o700},
		{Path: "link", Kind: tree.KindLink, Target: "train.py"},
		{Path: "train.py", Kind: tree.KindFile, Mode: 0o755, Chunks: []tree.Chunk{{Digest: tree.DigestOf([]byte(data)), Size: int64(len(data))}}},
		{Path: "\xc4\xe3", Kind: tree.KindFile, Mode: 0o400},
	}}
	return m, []given{
		file(TreeName, string(m.Encode())), dir(CodeDir),
		{Entry{Path: "code/empty", Kind: KindDir, Mode: 0o700}, ""},
		{Entry{Path: "code/link", Kind: KindLink, Target: "train.py"}, ""},
		{Entry{Path: "code/train.py", Kind: KindFile, Mode: 0o755, Size: int64(len(data))}, data},
		{Entry{Path: "code/\xc4\xe3", Kind: KindFile, Mode: 0o400}, ""},
	}
}

// sample is a small parcel.
func sample() (Head, []given) {
	m, code := sampleCode()
	list := append([]given{file(JobName, "job \"train\" {}\n"), dir(RecordDir), file("record/job.json", "{}\n")}, code...)
	list = append(list, dir(LogsDir), dir("logs/attempt-1"), file("logs/attempt-1/stdout.log", "hello\n"), dir(OutputsDir), file("outputs/a b\x1b[31m", strings.Repeat("weights", 100)))
	return headOf(m, list), list
}

func headOf(m tree.Manifest, list []given) Head {
	head := Head{
		Program: "1.0", Job: Job{ID: "j1", Name: "train", Project: "vision", User: "ann", State: structs.JobSucceeded, SubmittedAt: structs.At(epoch)},
		Code:    &Code{Tree: string(m.Digest()), Files: m.Files(), Bytes: m.Bytes(), Git: &structs.WorkdirGit{Branch: "main", Dirty: true}},
		LeftOut: []LeftOut{{Path: "outputs/pipe", Reason: "a link or a special file"}}, Entries: len(list),
	}
	for i := range list {
		head.Bytes += list[i].Size
	}
	return head
}

func write(t testing.TB, compress bool, head Head, list []given) ([]byte, string) {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, compress, "train-1", head, epoch)
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		if err := w.Add(list[i].Entry, epoch, strings.NewReader(list[i].data)); err != nil {
			t.Fatal(err)
		}
	}
	digest, err := w.Close(epoch)
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), digest
}

// readAll goes through a parcel to its end.
func readAll(data []byte) (*Reader, map[string]string, error) {
	r, err := Open(bytes.NewReader(data), int64(len(data)), Options{})
	if err != nil {
		return nil, nil, err
	}
	read := make(map[string]string)
	for {
		entry, err := r.Next()
		if errors.Is(err, io.EOF) {
			return r, read, nil
		}
		if err != nil {
			return r, nil, err
		}
		text, err := io.ReadAll(r)
		if err != nil {
			return r, nil, err
		}
		read[entry.Path] = string(text)
	}
}

// TestForm shows the form: it stays as it is for as long as its number.
func TestForm(t *testing.T) {
	head, list := sample()
	data, digest := write(t, false, head, list)
	var text strings.Builder
	archive := tar.NewReader(bytes.NewReader(data))
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "%c %04o %6d %s %q %q\n", header.Typeflag, header.Mode, header.Size, header.ModTime.UTC().Format(time.RFC3339), header.Name, header.Linkname)
		if base := strings.TrimPrefix(header.Name, "train-1/"); base == HeadName || base == ManifestName {
			content, err := io.ReadAll(archive)
			if err != nil {
				t.Fatal(err)
			}
			text.Write(content)
		}
	}
	fmt.Fprintf(&text, "package %s\n", digest)
	golden.Assert(t, filepath.Join("testdata", "form.golden"), text.String())
}

// TestRoundTrip reads what was written, compressed and not, and writes the same bytes again.
func TestRoundTrip(t *testing.T) {
	head, list := sample()
	for _, compress := range []bool{false, true} {
		data, digest := write(t, compress, head, list)
		r, read, err := readAll(data)
		if err != nil {
			t.Fatal(err)
		}
		if r.Digest() != digest || len(read) != len(list) || string(r.Job()) != list[0].data || r.Head().Job.Name != "train" {
			t.Errorf("read %d of %d entries, digest %s of %s, job %q", len(read), len(list), r.Digest(), digest, r.Job())
		}
		for _, one := range list {
			if read[one.Path] != one.data {
				t.Errorf("%q: %q", one.Path, read[one.Path])
			}
		}
		again, _ := write(t, compress, head, list)
		if !bytes.Equal(again, data) {
			t.Error("the same entries are other bytes")
		}
	}
}

// TestExtract writes a parcel into a directory: names, modes, links and bytes.
func TestExtract(t *testing.T) {
	head, list := sample()
	data, _ := write(t, true, head, list)
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	r, err := Open(bytes.NewReader(data), int64(len(data)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	told := int64(0)
	if err := r.Extract(root, func(done int64) { told = done }); err != nil {
		t.Fatal(err)
	}
	if told != head.Bytes {
		t.Errorf("told of %d bytes of %d", told, head.Bytes)
	}
	for _, one := range list {
		info, err := root.Lstat(one.Path)
		if err != nil {
			t.Error(err)
			continue
		}
		if one.Kind != KindLink && uint32(info.Mode().Perm()) != one.Mode {
			t.Errorf("%q: mode %o, not %o", one.Path, info.Mode().Perm(), one.Mode)
		}
	}
	if target, err := root.Readlink("code/link"); target != "train.py" {
		t.Errorf("link: %q, %v", target, err)
	}
	if text, err := root.ReadFile("outputs/a b\x1b[31m"); string(text) != list[len(list)-1].data {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

// TestExtractCode writes the code so that what it is can be sent again: by the same digest.
func TestExtractCode(t *testing.T) {
	head, list := sample()
	data, _ := write(t, true, head, list)
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	r, err := Open(bytes.NewReader(data), int64(len(data)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := r.ExtractCode(root, nil)
	if err != nil {
		t.Fatal(err)
	}
	if string(m.Digest()) != head.Code.Tree {
		t.Errorf("digest %s, not %s", m.Digest(), head.Code.Tree)
	}
	source, err := tree.OpenSource(dir, m)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	for _, chunk := range m.Chunks() {
		if _, err := source.Read(chunk); err != nil {
			t.Error(err)
		}
	}
	if _, err := root.Lstat("../outputs"); err == nil {
		t.Error("more than the code was written")
	}
}

// TestEveryByte flips each byte of a parcel: nothing that differs is taken for whole, but
// in what no reader looks at, such as the times in the archive's headers.
func TestEveryByte(t *testing.T) {
	head, list := sample()
	data, digest := write(t, false, head, list)
	_, good, err := readAll(data)
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for i := range data {
		data[i] ^= 0x10
		r, read, err := readAll(data)
		var found *DamagedError
		switch {
		case err == nil:
			if r.Digest() != digest {
				t.Fatalf("byte %d: another manifest is whole", i)
			}
			for name, text := range good {
				if read[name] != text {
					t.Fatalf("byte %d: %q came otherwise", i, name)
				}
			}
		case errors.As(err, &found):
			named++
		}
		data[i] ^= 0x10
	}
	if named < 700 { // of the bytes of files
		t.Errorf("only %d changed bytes were named", named)
	}
}

// TestCut takes bytes away from the end: what is left is never whole.
func TestCut(t *testing.T) {
	head, list := sample()
	for _, compress := range []bool{false, true} {
		data, _ := write(t, compress, head, list)
		least := len(data) // without which it is not whole
		if !compress {
			least -= 1024 + 512 // zeros at the end of an archive, and those that fill its last block
		}
		for _, left := range []int{0, 1, 2, 10, 511, 512, len(data) / 3, len(data) / 2, least - 1, least - 100} {
			if _, _, err := readAll(data[:left]); err == nil {
				t.Errorf("compressed %t: %d of %d bytes are whole", compress, left, len(data))
			}
		}
	}
}

// TestWriterKeepsItsWord does not write what no reader takes.
func TestWriterKeepsItsWord(t *testing.T) {
	head, list := sample()
	for name, spoil := range map[string]func([]given) []given{
		"parcel.promise":   func(l []given) []given { return l[:len(l)-1] },
		"parcel.changed":   func(l []given) []given { l[0].data = "short"; return l },
		"parcel.twice":     func(l []given) []given { l[2] = l[0]; return l },
		"parcel.no_parent": func(l []given) []given { l[1] = file("inputs/x", ""); return l },
		"parcel.path":      func(l []given) []given { l[1] = file("outputs/../../x", ""); return l },
		"parcel.entry":     func(l []given) []given { l[1].Mode = 0o4755; return l },
	} {
		w, err := NewWriter(io.Discard, false, "train-1", head, epoch)
		for _, one := range spoil(slices.Clone(list)) {
			if err == nil {
				err = w.Add(one.Entry, epoch, strings.NewReader(one.data))
			}
		}
		if err == nil {
			_, err = w.Close(epoch)
		}
		var told *structs.Error
		if !errors.As(err, &told) || told.ID != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := NewWriter(io.Discard, false, "../up", head, epoch); err == nil {
		t.Error("a directory elsewhere was taken")
	}
}

func gzipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

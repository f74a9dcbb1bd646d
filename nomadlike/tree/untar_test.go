package tree

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"nomadlike/nomadlike/structs"
)

func archive(t *testing.T, compress bool, entries ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	write := tar.NewWriter(&out)
	for i := range entries {
		head := &entries[i]
		body := head.Uname // what the file holds: the field itself is nobody's
		head.Uname, head.Size = "", int64(len(body))
		if head.Mode == 0 {
			head.Mode = 0o644
		}
		if err := write.WriteHeader(head); err != nil {
			t.Fatal(err)
		}
		if _, err := write.Write([]byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := write.Close(); err != nil {
		t.Fatal(err)
	}
	if !compress {
		return out.Bytes()
	}
	var packed bytes.Buffer
	into := gzip.NewWriter(&packed)
	if _, err := into.Write(out.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := into.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

func untarred(t *testing.T, data []byte, most int64) (string, error) {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	return dir, Untar(t.Context(), bytes.NewReader(data), root, most)
}

// A directory that comes as an archive is the tree that it is on the disk of whoever
// sends it: the same digest, whatever its parents' order and compression.
func TestUntarIsTheSameTree(t *testing.T) {
	here := t.TempDir()
	for name, mode := range map[string]os.FileMode{"train.py": 0o644, "bin/run.sh": 0o755, "secret/key": 0o600} {
		path := filepath.Join(here, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("bytes of "+name), mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{os.Mkdir(filepath.Join(here, "empty"), 0o755), os.Symlink("../train.py", filepath.Join(here, "bin/again.py")), os.Chmod(filepath.Join(here, "secret"), 0o700)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want, _, err := Scan(t.Context(), here, Options{Alone: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, compress := range []bool{false, true} {
		data := archive(t, compress,
			tar.Header{Name: "./", Typeflag: tar.TypeDir, Mode: 0o755},
			tar.Header{Name: "bin/again.py", Typeflag: tar.TypeSymlink, Linkname: "../train.py"},
			tar.Header{Name: "./secret/key", Typeflag: tar.TypeReg, Mode: 0o600, Uname: "bytes of secret/key"},
			tar.Header{Name: "secret/", Typeflag: tar.TypeDir, Mode: 0o700},
			tar.Header{Name: "bin/run.sh", Typeflag: tar.TypeReg, Mode: 0o755, Uname: "bytes of bin/run.sh"},
			tar.Header{Name: "train.py", Typeflag: tar.TypeReg, Uname: "bytes of train.py"},
			tar.Header{Name: "empty/", Typeflag: tar.TypeDir, Mode: 0o755},
		)
		dir, err := untarred(t, data, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := Scan(t.Context(), dir, Options{Alone: true})
		if err != nil || got.Digest() != want.Digest() {
			t.Errorf("compressed %v: %v, %v instead of %v", compress, err, got.Entries, want.Entries)
		}
	}
}

func TestUntarRefuses(t *testing.T) {
	file := func(name, body string) tar.Header {
		return tar.Header{Name: name, Typeflag: tar.TypeReg, Uname: body}
	}
	whole := archive(t, true, file("a", "some bytes"))
	for name, test := range map[string]struct {
		data []byte
		id   string
	}{
		"up":            {archive(t, false, file("../a", "x")), "tree.path"},
		"absolute":      {archive(t, false, file("/etc/passwd", "x")), "tree.path"},
		"dots within":   {archive(t, false, file("a/../../b", "x")), "tree.path"},
		"twice":         {archive(t, false, file("a", "x"), file("a", "y")), "tree.order"},
		"below a file":  {archive(t, false, file("a", "x"), file("a/b", "y")), "tree.order"},
		"below a link":  {archive(t, false, tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "/tmp"}, file("l/b", "y")), "tree.order"},
		"hard link":     {archive(t, false, file("a", "x"), tar.Header{Name: "b", Typeflag: tar.TypeLink, Linkname: "a"}), "tree.archive_special"},
		"device":        {archive(t, false, tar.Header{Name: "null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}), "tree.archive_special"},
		"pipe":          {archive(t, false, tar.Header{Name: "pipe", Typeflag: tar.TypeFifo}), "tree.archive_special"},
		"too large":     {archive(t, true, file("a", string(make([]byte, 600))), file("b", string(make([]byte, 600)))), "tree.archive_too_large"},
		"broken off":    {whole[:len(whole)-10], "tree.archive_broken"},
		"ends early":    {archive(t, false, file("a", "x"), file("b", "y"))[:1024], "tree.archive_broken"},
		"no archive":    {[]byte("hello, this is no archive at all"), "tree.archive_broken"},
		"half a header": {archive(t, false, file("a", "x"))[:700], "tree.archive_broken"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := untarred(t, test.data, 1000)
			var told *structs.Error
			if !errors.As(err, &told) || told.ID != test.id {
				t.Errorf("%v instead of %s", err, test.id)
			}
		})
	}
}

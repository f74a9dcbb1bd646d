package objects

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// filesOf sends a directory file by file, as a browser does.
type filesOf struct {
	*testing.T
	store  *Store
	place  structs.DataPlace
	upload string
	files  int
	bytes  int64
}

func (f *filesOf) ask(what string, file structs.DataFile, offset int64, data string) (*structs.DataReply, error) {
	return f.store.Answer(f.Context(), &structs.DataAsk{
		What: what, Place: f.place, Upload: f.upload, File: &file, Offset: offset, Data: []byte(data), Files: f.files, Bytes: f.bytes,
	})
}

// send begins a file and sends it in pieces.
func (f *filesOf) send(name, text string, pieces int) error {
	reply, err := f.ask(structs.DataAskFile, structs.DataFile{Path: name, Size: int64(len(text))}, 0, "")
	if err != nil {
		return err
	}
	for at := int(reply.File.Offset); at < len(text); {
		end := min(len(text), at+max(1, len(text)/pieces))
		if reply, err = f.ask(structs.DataAskWrite, *reply.File, int64(at), text[at:end]); err != nil {
			return err
		}
		at = int(reply.File.Offset)
	}
	return nil
}

// finish makes the version of what came. list is what must be there; "": what was announced.
func (f *filesOf) finish(list string) (*structs.DataReply, error) {
	if list != "" {
		if _, err := f.store.Answer(f.Context(), &structs.DataAsk{What: structs.DataAskNames, Place: f.place, Upload: f.upload, Data: []byte(list)}); err != nil {
			return nil, err
		}
	}
	place := f.place
	for {
		reply, err := f.store.Answer(f.Context(), &structs.DataAsk{What: structs.DataAskGather, Place: place, Upload: f.upload, Files: f.files, Bytes: f.bytes})
		if err != nil {
			return nil, err
		}
		if reply.Done {
			place.Digest = reply.Digest
			break
		}
	}
	reply, err := finish(f.store, place, f.upload)
	if err == nil {
		reply.Digest = place.Digest
	}
	return reply, err
}

func (f *filesOf) refused(what, want string, err error) {
	f.Helper()
	if got := idOf(err); err == nil || got != want {
		f.Errorf("%s: %q, want %q", what, got, want)
	}
}

func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func openFiles1(t *testing.T, store *Store, number, base, files int, bytes int64) *filesOf {
	t.Helper()
	f := &filesOf{T: t, store: store, upload: fmt.Sprintf("files-upload-%d", number), files: files, bytes: bytes, place: structs.DataPlace{
		Project: "vision", Owner: "li", Kind: structs.StorageDataset, Name: "cifar10", Storage: "nas", Version: number, Base: base,
	}}
	if _, err := f.ask(structs.DataAskOpen, structs.DataFile{}, 0, ""); err != nil {
		t.Fatal(err)
	}
	return f
}

// A directory that comes file by file is the version that a push of it makes; what has
// not changed since the version before is shared with that.
func TestFilesOneByOne(t *testing.T) {
	store := openStore(t, t.TempDir())
	files := map[string]string{"a/b/one": "one", "a/two": random(1, 3<<20), "empty": "", "图/片 1.png": "three", "same": random(2, 2<<20)}
	of := sampleOf(t, files)
	if _, err := sampleOf(t, map[string]string{"same": files["same"], "old": "x"}).push(store, 1, 0); err != nil {
		t.Fatal(err)
	}
	sum, list := int64(0), ""
	for name, text := range files {
		sum += int64(len(text))
		list += sumOf(text) + "  ./" + name + "\n"
	}
	f := openFiles1(t, store, 2, 1, len(files), sum)
	for name, text := range files {
		if err := f.send(name, text, 3); err != nil {
			t.Fatal(name, err)
		}
	}
	reply, err := f.finish(list)
	if err != nil || reply.Digest != string(of.manifest.Digest()) || reply.Files != len(files) || reply.Bytes != sum {
		t.Fatalf("%+v, %v; a push has %s", reply, err, of.manifest.Digest())
	}
	again, err := f.finish("")
	if err != nil || again.Digest != reply.Digest {
		t.Errorf("finished again: %+v, %v", again, err)
	}
	place := f.place
	place.Digest = reply.Digest
	checked, err := store.Answer(t.Context(), &structs.DataAsk{What: structs.DataAskVerify, Place: place, Upload: "verify-it"})
	if err != nil || !checked.Done || checked.Wrongs > 0 {
		t.Errorf("%+v, %v", checked, err)
	}
	inode := func(number string) os.FileInfo {
		info, err := os.Stat(filepath.Join(store.config.Storages[0].Path[:strings.Index(store.config.Storages[0].Path, "/{")], "dataset/vision/cifar10", number, "same"))
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	if !os.SameFile(inode("1"), inode("2")) {
		t.Error("a file that has not changed is there twice")
	}
	f.refused("a file for what is over", "objects.no_upload", f.send("late", "x", 1))
}

// What is wrong with a file is said of that file, nothing of it is kept, and the rest goes on.
func TestFilesOneByOneRefusals(t *testing.T) {
	full := uint64(1 << 40)
	store := openStore(t, t.TempDir(), func(c *Config) { c.FreeBytes = func(string) (uint64, error) { return full, nil } })
	f := openFiles1(t, store, 1, 0, 4, 100)
	for name, want := range map[string]string{
		"../x": "tree.path", "/x": "tree.path", "a//b": "tree.path", "a/./b": "tree.path", "": "tree.path", "x\x00": "tree.path",
		"\xff": "objects.file_utf8", strings.Repeat("n", 256): "tree.name_too_long",
	} {
		f.refused(fmt.Sprintf("%q", name), want, f.send(name, "x", 1))
	}
	for name, text := range map[string]string{"a\nb\x1b[31m": "x", "dir/f": "12345"} { // hostile, and a name all the same
		if err := f.send(name, text, 2); err != nil {
			t.Fatal(err)
		}
	}
	f.refused("a file in the place of a directory", "objects.file_in_the_way", f.send("dir", "x", 1))
	f.refused("a file below a file", "objects.file_in_the_way", f.send("dir/f/g", "x", 1))
	f.refused("more bytes than were announced", "objects.over_announced", f.send("big", strings.Repeat("x", 95), 1))
	reply, err := f.ask(structs.DataAskFile, structs.DataFile{Path: "c", Size: 10, SHA256: sumOf("0123456789")}, 0, "0123")
	if err != nil || reply.File.Offset != 4 {
		t.Fatalf("%+v, %v", reply, err)
	}
	file := *reply.File
	_, err = f.ask(structs.DataAskWrite, file, 3, "3")
	f.refused("from elsewhere", "objects.offset", err)
	_, err = f.ask(structs.DataAskWrite, file, 4, "4567890")
	f.refused("over the size", "objects.file_over", err)
	_, err = f.ask(structs.DataAskFile, structs.DataFile{Path: "c", Size: 11}, 0, "")
	f.refused("as another one", "objects.file_other", err)
	_, err = f.ask(structs.DataAskWrite, structs.DataFile{ID: "../../../manifest"}, 0, "x")
	f.refused("a name out of the records", "objects.no_file", err)
	_, err = f.finish("")
	f.refused("before all of it came", "objects.files_wrong", err)
	full = 10
	_, err = f.ask(structs.DataAskWrite, file, 4, "45")
	f.refused("a full disk", "objects.no_room", err)
	full = 1 << 40
	_, err = f.ask(structs.DataAskWrite, file, 4, "45678X")
	f.refused("another digest", "objects.file_digest", err)
	if reply, err = f.ask(structs.DataAskOffset, file, 0, ""); err != nil || reply.File.Offset != 0 {
		t.Errorf("it begins anew: %+v, %v", reply, err)
	}
	if err := f.send("d", "dd", 1); err != nil {
		t.Fatal(err)
	}
	f.refused("one file too many", "objects.over_announced", f.send("e", "e", 1))
	list, err := f.ask(structs.DataAskFiles, structs.DataFile{}, 0, "")
	if err != nil || !list.Done || len(list.List) != 4 {
		t.Errorf("%+v, %v", list, err)
	}
	for at, text := range []string{"0123", "456789"} {
		if _, err = f.ask(structs.DataAskWrite, file, int64(4*at), text); err != nil {
			t.Fatal(err)
		}
	}
	_, err = f.finish("x")
	f.refused("no list", "objects.names_line", err)
	_, err = f.finish(sumOf("12345") + "  dir/f\n" + sumOf("gone") + " *gone\n" + sumOf("other") + "  d\n\\" + sumOf("x") + "  a\\nb\x1b[31m\n")
	var told *structs.Error
	if !errors.As(err, &told) || told.ID != "objects.files_wrong" {
		t.Fatal(err)
	}
	var got []string
	for i := range told.Details {
		got = append(got, told.Details[i].ID+" "+told.Details[i].Params["path"])
	}
	slices.Sort(got)
	if want := []string{"objects.wrong_changed d", "objects.wrong_extra c", "objects.wrong_gone gone"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if _, err = f.ask(structs.DataAskDrop, structs.DataFile{ID: PartID("c")}, 0, ""); err != nil {
		t.Fatal(err)
	}
	if err := f.send("d", "dd", 1); err != nil { // the list was wrong, and it is to be sent anew
		t.Fatal(err)
	}
	reply, err = f.finish(sumOf("12345") + "  dir/f\n" + sumOf("dd") + "  d\n\\" + sumOf("x") + "  a\\nb\x1b[31m\n")
	if err != nil || reply.Files != 3 {
		t.Errorf("%+v, %v", reply, err)
	}
}

// A node that stops, another one that takes over, bytes that the disk loses: what was
// acknowledged is gone on with, and what is wrong is asked for again.
func TestFilesOneByOneGoOn(t *testing.T) {
	dir := t.TempDir()
	store := openStore(t, dir)
	text := random(3, 1<<20)
	f := openFiles1(t, store, 1, 0, 1, int64(len(text)))
	reply, err := f.ask(structs.DataAskFile, structs.DataFile{Path: "f", Size: int64(len(text))}, 0, text[:1000])
	if err != nil {
		t.Fatal(err)
	}
	store.Close()
	at := filepath.Join(dir, "dataset/vision/cifar10/.nomadlike/up-files-upload-1/tree/f")
	file, err := os.OpenFile(at, os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		_, err = file.WriteString("what was written and not acknowledged")
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	f.store = openStore(t, dir, func(c *Config) { c.NodeID = "node-2" })
	if reply, err = f.ask(structs.DataAskOffset, *reply.File, 0, ""); err != nil || reply.File.Offset != 1000 {
		t.Fatalf("%+v, %v", reply, err)
	}
	if err := f.send("f", text, 3); err != nil {
		t.Fatal(err)
	}
	data := []byte(text)
	data[5000] ^= 1
	if err := os.WriteFile(at, data, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = f.finish("")
	f.refused("bytes that the disk changed", "objects.files_wrong", err)
	if _, err := os.Stat(filepath.Join(dir, "dataset/vision/cifar10/1")); err == nil {
		t.Error("half an upload has its name")
	}
	if err := f.send("f", text, 3); err != nil {
		t.Fatal(err)
	}
	if reply, err = f.finish(""); err != nil || reply.Digest != string(sampleOf(t, map[string]string{"f": text}).manifest.Digest()) {
		t.Errorf("%+v, %v", reply, err)
	}
	g := openFiles1(t, f.store, 2, 1, 2, 10)
	if err := g.send("x", "x", 1); err != nil {
		t.Fatal(err)
	}
	if _, err := g.ask(structs.DataAskAbort, structs.DataFile{}, 0, ""); err != nil {
		t.Fatal(err)
	}
	g.refused("given up", "objects.no_upload", g.send("x", "x", 1))
	if _, err := os.Stat(filepath.Join(dir, "dataset/vision/cifar10/.nomadlike/up-files-upload-2")); err == nil {
		t.Error("what was given up stays on the disk")
	}
}

// A storage that takes capitals for small letters has one of two such names refused.
func TestFilesOneByOneTwins(t *testing.T) {
	store := openStore(t, t.TempDir())
	f := openFiles1(t, store, 1, 0, 2, 10)
	u, err := singles{store}.filesUpload(&f.place, f.upload)
	if err != nil {
		t.Fatal(err)
	}
	u.tally.folds = true // as its own question would have found
	u.close()
	if err := f.send("Ab", "1", 1); err != nil {
		t.Fatal(err)
	}
	f.refused("a twin", "objects.twins", f.send("aB", "2", 1))
	if _, err := tree.Decode([]byte("x")); err == nil {
		t.Error("no manifest")
	}
}

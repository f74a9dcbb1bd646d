package objects

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// TestLinks: users may write where versions lie. A directory that they replace by a link
// is not entered, whenever they do it.
func TestLinks(t *testing.T) {
	one := sampleOf(t, map[string]string{"a": "one", "b/c": "two"})
	for name, c := range map[string]struct {
		link string // what is replaced by a link to a directory outside
		late bool   // after the upload has begun
		want string
	}{
		"the object":                 {"dataset/vision/cifar10", false, "objects.link"},
		"the object, meanwhile":      {"dataset/vision/cifar10", true, "objects.link"},
		"the agent's own":            {"dataset/vision/cifar10/.nomadlike", false, "objects.link"},
		"the agent's own, meanwhile": {"dataset/vision/cifar10/.nomadlike", true, "objects.link"},
		"the version":                {"dataset/vision/cifar10/1", false, "objects.in_the_way"},
		"the version, meanwhile":     {"dataset/vision/cifar10/1", true, "objects.in_the_way"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, outside := t.TempDir(), t.TempDir()
			replace := func() {
				at := filepath.Join(dir, c.link)
				_ = os.MkdirAll(filepath.Dir(at), 0o755)
				_ = os.Rename(at, at+".theirs")
				if err := os.Symlink(outside, at); err != nil {
					t.Fatal(err)
				}
			}
			if !c.late {
				replace()
			}
			s := openStore(t, dir)
			place := one.place(1, 0)
			err := one.begin(s, place, "upload-1")
			if c.late {
				if err != nil {
					t.Fatal(err)
				}
				replace()
				s.Close()
				s = openStore(t, dir)
			}
			if err == nil {
				_, err = one.push(s, 1, 0)
			}
			if idOf(err) != c.want {
				t.Errorf("%v", err)
			}
			if names, err := os.ReadDir(outside); err != nil || len(names) > 0 {
				t.Errorf("outside: %v, %v", names, err)
			}
		})
	}
}

// TestForeign: what is not the agent's own is neither taken over nor believed.
func TestForeign(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	one := sampleOf(t, map[string]string{"a": "one"})
	at := filepath.Join(dir, "dataset/vision/cifar10")
	if err := os.MkdirAll(at+"/1", 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := one.push(s, 1, 0); idOf(err) != "objects.in_the_way" {
		t.Errorf("a directory of somebody's: %v", err)
	}
	if _, err := s.Answer(t.Context(), &structs.DataAsk{What: structs.DataAskRemove, Place: one.place(1, 0)}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(at + "/1"); err != nil {
		t.Errorf("a directory of somebody's was removed: %v", err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(at+"/.nomadlike", 12345, 12345); err != nil {
			t.Fatal(err)
		}
		if _, err := one.push(s, 2, 0); idOf(err) != "objects.not_ours" {
			t.Errorf("somebody else's directory: %v", err)
		}
	}
}

// TestOrphan: what an object left that is gone makes way for one of the same name.
func TestOrphan(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	old, one := sampleOf(t, map[string]string{"old": "old"}), sampleOf(t, map[string]string{"a": "one"})
	if _, err := old.push(s, 1, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := one.push(s, 1, 0); err != nil {
		t.Fatal(err)
	}
	if got := shown(t, filepath.Join(dir, "dataset/vision/cifar10/1")); got != "-r--r--r-- a one\ndr-xr-xr-x ." {
		t.Error(got)
	}
}

// TestHostileAsks: whatever is asked is checked where it is used.
func TestHostileAsks(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	one := sampleOf(t, map[string]string{"a": "one", "b": "two", "c": "three"})
	good := one.place(1, 0)
	if err := one.begin(s, good, "upload-1"); err != nil {
		t.Fatal(err)
	}
	chunks := one.asked()
	manifest := one.manifest.Encode()
	open := tree.Manifest{Entries: []tree.Entry{{Path: "a", Kind: tree.KindFile, Mode: 0o777}}}
	out := tree.Manifest{Entries: []tree.Entry{{Path: "a", Kind: tree.KindLink, Target: "../../x"}}}
	with := func(change func(*structs.DataPlace)) structs.DataPlace {
		place := good
		change(&place)
		return place
	}
	for name, c := range map[string]struct {
		ask  structs.DataAsk
		want string
	}{
		"a name out of the storage":         {structs.DataAsk{What: structs.DataAskList, Place: with(func(p *structs.DataPlace) { p.Name = "../x" })}, "name."},
		"a project out of it":               {structs.DataAsk{What: structs.DataAskList, Place: with(func(p *structs.DataPlace) { p.Project = ".." })}, "name."},
		"a kind that is none":               {structs.DataAsk{What: structs.DataAskList, Place: with(func(p *structs.DataPlace) { p.Kind = "mount" })}, "objects.kind"},
		"no version":                        {structs.DataAsk{What: structs.DataAskList, Place: with(func(p *structs.DataPlace) { p.Version = 0 })}, "objects.number"},
		"no such storage":                   {structs.DataAsk{What: structs.DataAskList, Place: with(func(p *structs.DataPlace) { p.Storage = "x" })}, "client.storage_missing"},
		"no such version":                   {structs.DataAsk{What: structs.DataAskList, Place: with(func(p *structs.DataPlace) { p.Version = 9 })}, "objects.gone"},
		"an upload out of the directory":    {structs.DataAsk{What: structs.DataAskAbort, Place: good, Upload: "../../../x"}, "objects.no_upload"},
		"an upload that is none":            {structs.DataAsk{What: structs.DataAskMissing, Place: good, Upload: "upload-9"}, "objects.no_upload"},
		"another manifest":                  {structs.DataAsk{What: structs.DataAskMissing, Place: with(func(p *structs.DataPlace) { p.Digest = string(tree.DigestOf(nil)) }), Upload: "upload-1"}, "objects.other_tree"},
		"a manifest of another digest":      {structs.DataAsk{What: structs.DataAskManifest, Place: with(func(p *structs.DataPlace) { p.Digest = string(tree.DigestOf(nil)) }), Upload: "upload-2", Data: manifest, End: true}, "objects.manifest_digest"},
		"a manifest that anybody may write": {structs.DataAsk{What: structs.DataAskManifest, Place: with(func(p *structs.DataPlace) { p.Digest = string(open.Digest()) }), Upload: "upload-3", Data: open.Encode(), End: true}, "objects.mode"},
		"a manifest with a link out":        {structs.DataAsk{What: structs.DataAskManifest, Place: with(func(p *structs.DataPlace) { p.Digest = string(tree.DigestOf(out.Encode())) }), Upload: "upload-4", Data: out.Encode(), End: true}, "tree.link_out"},
		"a piece far behind":                {structs.DataAsk{What: structs.DataAskManifest, Place: good, Upload: "upload-5", Offset: 1 << 40, Data: manifest}, "tree.manifest_too_large"},
		"no digest":                         {structs.DataAsk{What: structs.DataAskManifest, Place: with(func(p *structs.DataPlace) { p.Digest = "x" }), Upload: "upload-6", Data: manifest}, "code.digest"},
		"a chunk of another tree":           {structs.DataAsk{What: structs.DataAskPut, Place: good, Upload: "upload-1", Chunks: []structs.CodeChunk{{Digest: string(tree.DigestOf([]byte("x"))), Size: 1}}, Data: []byte("x")}, "objects.not_of_tree"},
		"other bytes in the middle":         {structs.DataAsk{What: structs.DataAskPut, Place: good, Upload: "upload-1", Chunks: chunks, Data: []byte("oneTWOthree")}, "code.wrong_digest"},
		"fewer bytes":                       {structs.DataAsk{What: structs.DataAskPut, Place: good, Upload: "upload-1", Chunks: chunks, Data: []byte("onetwo")}, "code.wrong_digest"},
		"more bytes":                        {structs.DataAsk{What: structs.DataAskPut, Place: good, Upload: "upload-1", Chunks: chunks, Data: []byte("onetwothreefour")}, "code.body_broken"},
		"another size":                      {structs.DataAsk{What: structs.DataAskPut, Place: good, Upload: "upload-1", Chunks: []structs.CodeChunk{{Digest: chunks[0].Digest, Size: -1}}, Data: []byte("one")}, "code.wrong_digest"},
		"too many chunks":                   {structs.DataAsk{What: structs.DataAskMissing, Place: good, Upload: "upload-1", Chunks: make([]structs.CodeChunk, structs.DataAskChunksMax+1)}, "code.body_too_large"},
		"no question":                       {structs.DataAsk{What: "everything"}, "objects.question"},
	} {
		if _, err := s.Answer(t.Context(), &c.ask); !strings.HasPrefix(idOf(err), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if lacking, err := one.missing(s, good, "upload-1"); err != nil || len(lacking) != len(chunks) {
		t.Errorf("after all that %d are missing, %v", len(lacking), err)
	}
	names, err := os.ReadDir(filepath.Join(dir, "dataset/vision"))
	if err != nil || len(names) != 1 {
		t.Errorf("%v, %v", names, err)
	}
}

// TestBaseOfAnother: what an earlier version's directory holds is believed when it was
// compared, whoever has put it there.
func TestBaseOfAnother(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	one := sampleOf(t, map[string]string{"a": "one", "b": "two"})
	if _, err := one.push(s, 1, 0); err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(dir, "dataset/vision/cifar10/1")
	outside := filepath.Join(t.TempDir(), "secret")
	for _, err := range []error{
		os.WriteFile(outside, []byte("one"), 0o444), os.Chmod(at, 0o755), os.Remove(at + "/a"), os.Symlink(outside, at+"/a"),
		os.Remove(at + "/b"), os.WriteFile(at+"/b", []byte("owt"), 0o444),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	two := sampleOf(t, map[string]string{"a": "one", "b": "two", "c": "three"})
	place := two.place(2, 1)
	if err := two.begin(s, place, "upload-2"); err != nil {
		t.Fatal(err)
	}
	if _, err := finish(s, place, "upload-2"); idOf(err) != "code.incomplete" {
		t.Fatal(err)
	}
	lacking, err := two.missing(s, place, "upload-2")
	if err != nil || len(lacking) != 3 {
		t.Fatalf("%d are missing, %v", len(lacking), err)
	}
	if err := two.put(s, place, "upload-2", lacking); err != nil {
		t.Fatal(err)
	}
	if _, err := finish(s, place, "upload-2"); err != nil {
		t.Fatal(err)
	}
	if got := shown(t, filepath.Join(dir, "dataset/vision/cifar10/2")); got != "-r--r--r-- a one\n-r--r--r-- b two\n-r--r--r-- c three\ndr-xr-xr-x ." {
		t.Error(got)
	}
}

package parcel

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// forged is a parcel by somebody who follows no rule: headers as they like, and a
// manifest that agrees with them.
type forged struct {
	head    Head
	headers []tar.Header
	data    []string
	list    []Entry
}

// forge begins with what a good parcel has.
func forge() *forged {
	f := &forged{head: Head{Format: Format, LeftOut: []LeftOut{}}}
	f.file(JobName, "job \"x\" {}\n")
	return f
}

func (f *forged) add(header tar.Header, data string, e Entry) *forged {
	header.Size = int64(len(data))
	f.headers, f.data = append(f.headers, header), append(f.data, data)
	if e.Kind == KindFile {
		sum := sha256.Sum256([]byte(data))
		e.SHA256, e.Size = hex.EncodeToString(sum[:]), int64(len(data))
	}
	f.list = append(f.list, e)
	f.head.Entries++
	f.head.Bytes += header.Size
	return f
}

func (f *forged) file(name, data string) *forged {
	return f.add(tar.Header{Typeflag: tar.TypeReg, Name: "x/" + name, Mode: 0o644}, data, Entry{Path: name, Kind: KindFile, Mode: 0o644})
}

func (f *forged) dir(name string) *forged {
	return f.add(tar.Header{Typeflag: tar.TypeDir, Name: "x/" + name + "/", Mode: 0o755}, "", Entry{Path: name, Kind: KindDir, Mode: 0o755})
}

func (f *forged) special(kind byte, name, target string) *forged {
	return f.add(tar.Header{Typeflag: kind, Name: "x/" + name, Linkname: target, Mode: 0o644}, "", Entry{Path: name, Kind: KindFile, Mode: 0o644})
}

func (f *forged) link(name, target string) *forged {
	return f.add(tar.Header{Typeflag: tar.TypeSymlink, Name: "x/" + name, Linkname: target, Mode: 0o777}, "", Entry{Path: name, Kind: KindLink, Target: target})
}

func (f *forged) bytes(t testing.TB) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	put := func(header tar.Header, data string) {
		header.Format, header.Size = tar.FormatGNU, int64(len(data))
		if err := w.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	head, err := json.Marshal(f.head)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(head)
	list := append([]Entry{{Path: HeadName, Kind: KindFile, Mode: 0o644, Size: int64(len(head)), SHA256: hex.EncodeToString(sum[:])}}, f.list...)
	put(tar.Header{Typeflag: tar.TypeReg, Name: "x/" + HeadName, Mode: 0o644}, string(head))
	for i := range f.headers {
		put(f.headers[i], f.data[i])
	}
	manifest, err := Manifest{Format: Format, Entries: list}.encode()
	if err != nil {
		t.Fatal(err)
	}
	put(tar.Header{Typeflag: tar.TypeReg, Name: "x/" + ManifestName, Mode: 0o644}, string(manifest))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// withCode gives a forged parcel code, with a manifest that says what m says.
func (f *forged) withCode(m tree.Manifest) *forged {
	data := string(m.Encode())
	f.head.Code = &Code{Tree: string(tree.DigestOf([]byte(data))), Files: m.Files(), Bytes: m.Bytes()}
	return f.file(TreeName, data).dir(CodeDir)
}

// TestHostile refuses what is no parcel, each for its own reason, and leaves nothing
// outside of the directory that it is extracted into.
func TestHostile(t *testing.T) {
	good := forge().dir(OutputsDir).file("outputs/model", "weights").bytes(t)
	if _, _, err := readAll(good); err != nil {
		t.Fatalf("a good one: %v", err)
	}
	linked := tree.Manifest{Entries: []tree.Entry{{Path: "up", Kind: tree.KindLink, Target: "train.py"}}}
	long := strings.Repeat("a", NameMax+1)
	for name, test := range map[string]struct {
		data []byte
		want string
	}{
		"nothing":               {nil, "parcel.none"},
		"no archive":            {[]byte("#!/bin/sh\nrm -rf ~\n"), "parcel.none"},
		"another archive":       {plain(t, tar.Header{Name: "a.txt", Typeflag: tar.TypeReg, Mode: 0o644}), "parcel.none"},
		"up":                    {forge().dir(OutputsDir).file("outputs/../../x", "").bytes(t), "parcel.path"},
		"absolute":              {forge().add(tar.Header{Typeflag: tar.TypeReg, Name: "/etc/cron.d/x", Mode: 0o644}, "", Entry{Path: "etc", Kind: KindFile}).bytes(t), "parcel.path"},
		"absolute below":        {forge().dir(OutputsDir).file("outputs//etc/x", "").bytes(t), "parcel.path"},
		"another top":           {forge().add(tar.Header{Typeflag: tar.TypeReg, Name: "y/outputs", Mode: 0o644}, "", Entry{Path: "outputs", Kind: KindFile}).bytes(t), "parcel.path"},
		"dot":                   {forge().dir(OutputsDir).file("outputs/./x", "").bytes(t), "parcel.path"},
		"long name":             {forge().dir(OutputsDir).file("outputs/"+long, "").bytes(t), "parcel.path"},
		"unknown place":         {forge().dir("home").bytes(t), "parcel.path"},
		"no parent":             {forge().file("outputs/x", "").bytes(t), "parcel.no_parent"},
		"below a file":          {forge().dir(OutputsDir).file("outputs/x", "").file("outputs/x/y", "").bytes(t), "parcel.no_parent"},
		"twice":                 {forge().dir(OutputsDir).file("outputs/x", "1").file("outputs/x", "2").bytes(t), "parcel.twice"},
		"two heads":             {forge().file(HeadName, "{}").bytes(t), "parcel.twice"},
		"setuid":                {forge().dir(OutputsDir).add(tar.Header{Typeflag: tar.TypeReg, Name: "x/outputs/x", Mode: 0o4755}, "", Entry{Path: "outputs/x", Kind: KindFile, Mode: 0o755}).bytes(t), "parcel.entry"},
		"link in outputs":       {forge().dir(OutputsDir).link("outputs/x", "/etc/passwd").bytes(t), "parcel.entry"},
		"hard link":             {forge().dir(OutputsDir).special(tar.TypeLink, "outputs/x", "/etc/passwd").bytes(t), "parcel.special"},
		"device":                {forge().dir(OutputsDir).special(tar.TypeBlock, "outputs/x", "").bytes(t), "parcel.special"},
		"character device":      {forge().dir(OutputsDir).special(tar.TypeChar, "outputs/x", "").bytes(t), "parcel.special"},
		"pipe":                  {forge().dir(OutputsDir).special(tar.TypeFifo, "outputs/x", "").bytes(t), "parcel.special"},
		"code without a tree":   {forge().dir(CodeDir).file("code/x", "").bytes(t), "parcel.code"},
		"a tree nobody told of": {forge().file(TreeName, string(linked.Encode())).bytes(t), "parcel.code"},
		"other link":            {forge().withCode(linked).link("code/up", "../../../etc").bytes(t), "parcel.code"},
		"more code":             {forge().withCode(linked).link("code/up", "train.py").file("code/x", "").bytes(t), "parcel.code"},
		"job is a directory":    {forge().dir(RecordDir).dir(SubmittedName).bytes(t), "parcel.entry"},
		"no job":                {(&forged{head: Head{Format: Format}}).bytes(t), "parcel.no_job"},
		"large job":             {forge().file(SubmittedName, strings.Repeat(" ", JobSizeMax+1)).bytes(t), "parcel.file_too_large"},
		"another format":        {forgedHead(t, func(h *Head) { h.Format = 2 }), "parcel.format"},
		"too many":              {forgedHead(t, func(h *Head) { h.Entries = EntriesMax }), "parcel.too_many"},
		"bomb":                  {forgedHead(t, func(h *Head) { h.Bytes = 1 << 50 }), "parcel.ratio"},
		"less than nothing":     {forgedHead(t, func(h *Head) { h.Bytes = -1 }), "parcel.unreadable"},
		"more bytes than told":  {forgedHead(t, func(h *Head) { h.Bytes-- }), "parcel.more"},
		"more files than told":  {forgedHead(t, func(h *Head) { h.Entries-- }), "parcel.more"},
		"something behind":      {append(slices.Clone(good), "rm -rf"...), "parcel.behind"},
		"an archive behind":     {behind(t, good), "parcel.behind"},
		"behind the gzip":       {append(gzipped(t, good), gzipped(t, good)...), ""},
		"cut":                   {good[:len(good)-2048-1024], "parcel.cut"},
		"cut in a file":         {good[:len(good)-1024-100], "parcel.broken"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := readAll(test.data)
			if test.want == "" {
				return
			}
			var told *structs.Error
			if !errors.As(err, &told) || told.ID != test.want {
				t.Errorf("%v, not %s", err, test.want)
			}
			above := t.TempDir()
			if err := os.Mkdir(filepath.Join(above, "in"), 0o755); err != nil {
				t.Fatal(err)
			}
			root, err := os.OpenRoot(filepath.Join(above, "in"))
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			if r, err := Open(bytes.NewReader(test.data), int64(len(test.data)), Options{}); err == nil {
				if r.Extract(root, nil) == nil {
					t.Error("it was extracted")
				}
			}
			if left, err := os.ReadDir(above); err != nil || len(left) != 1 {
				t.Errorf("outside: %v, %v", left, err)
			}
		})
	}
}

// TestDamage names everything that is not as the manifest says.
func TestDamage(t *testing.T) {
	f := forge().dir(OutputsDir).file("outputs/bytes", "1").file("outputs/mode", "2").file("outputs/unknown", "3")
	f.list[2].SHA256 = strings.Repeat("0", 64)
	f.list[3].Mode = 0o600
	f.list[4].Path = "outputs/missing"
	_, _, err := readAll(f.bytes(t))
	var found *DamagedError
	if !errors.As(err, &found) {
		t.Fatal(err)
	}
	want := []Problem{{"outputs/bytes", ProblemBytes}, {"outputs/mode", ProblemEntry}, {"outputs/missing", ProblemMissing}, {"outputs/unknown", ProblemUnknown}}
	if !slices.Equal(found.Problems, want) {
		t.Errorf("%v", found.Problems)
	}
}

// TestOtherCode notices code that is not what its digest says, though the manifest of the
// parcel agrees with it.
func TestOtherCode(t *testing.T) {
	m := tree.Manifest{Entries: []tree.Entry{{Path: "train.py", Kind: tree.KindFile, Mode: 0o644, Chunks: []tree.Chunk{{Digest: tree.DigestOf([]byte("good")), Size: 4}}}}}
	_, _, err := readAll(forge().withCode(m).file("code/train.py", "evil").bytes(t))
	var found *DamagedError
	if !errors.As(err, &found) || !slices.Equal(found.Problems, []Problem{{"code/train.py", ProblemCode}}) {
		t.Error(err)
	}
	_, _, err = readAll(forge().withCode(m).bytes(t)) // and none of it
	if !errors.As(err, &found) || !slices.Contains(found.Problems, Problem{TreeName, ProblemCode}) {
		t.Error(err)
	}
}

// TestAnyRatio opens what becomes much larger for those who say so, and believes its head
// no more than before.
func TestAnyRatio(t *testing.T) {
	data := forgedHead(t, func(h *Head) { h.Bytes = 1 << 50 })
	r, err := Open(bytes.NewReader(data), int64(len(data)), Options{AnyRatio: true})
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = r.Next()
	}
	var found *DamagedError
	if !errors.As(err, &found) || !slices.Equal(found.Problems, []Problem{{HeadName, ProblemEntry}}) {
		t.Error(err)
	}
}

func plain(t testing.TB, header tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	if err := errors.Join(w.WriteHeader(&header), w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func forgedHead(t testing.TB, change func(*Head)) []byte {
	t.Helper()
	f := forge().dir(OutputsDir).file("outputs/model", "weights")
	change(&f.head)
	return f.bytes(t)
}

// behind puts a file where tar programs do not look any more: behind the manifest.
func behind(t testing.TB, good []byte) []byte {
	t.Helper()
	return append(slices.Clone(good[:len(good)-1024]), plain(t, tar.Header{Name: "x/outputs/more", Typeflag: tar.TypeReg, Mode: 0o644})...)
}

// FuzzReader takes any bytes apart. Whatever they are, it ends, names stay below the
// parcel, and what is whole is written as the same manifest again.
func FuzzReader(f *testing.F) {
	head, list := sample()
	data, _ := write(f, false, head, list)
	f.Add(data)
	packed, _ := write(f, true, head, list)
	f.Add(packed)
	f.Add(forge().dir(OutputsDir).file("outputs/model", "weights").bytes(f))
	f.Add(forge().dir(OutputsDir).special(tar.TypeLink, "outputs/x", "/etc/passwd").bytes(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, read, err := readAll(data)
		if r == nil {
			return
		}
		seen := map[string]bool{}
		for _, e := range r.Entries() {
			if !local(e.Path) || seen[e.Path] {
				t.Fatalf("a name %q", e.Path)
			}
			seen[e.Path] = true
		}
		if err != nil {
			return
		}
		entries := r.Entries()[1:]
		var again []given
		for _, e := range entries {
			e.SHA256 = ""
			again = append(again, given{e, read[e.Path]})
		}
		if _, _, err := readAll(firstOf(write(t, false, *r.Head(), again))); err != nil {
			t.Fatalf("written again: %v", err)
		}
	})
}

func firstOf(data []byte, _ string) []byte { return data }

package tree

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nomadlike/nomadlike/structs"
)

func fileOf(name, content string) Entry {
	entry := Entry{Path: name, Kind: KindFile, Mode: 0o644}
	if content != "" {
		entry.Chunks = []Chunk{{Digest: DigestOf([]byte(content)), Size: int64(len(content))}}
	}
	return entry
}

func dirOf(name string) Entry { return Entry{Path: name, Kind: KindDir, Mode: 0o755} }

func linkOf(name, target string) Entry { return Entry{Path: name, Kind: KindLink, Target: target} }

func treeOf(entries ...Entry) Manifest { return Manifest{Entries: entries} }

// sampleTree has one of each, and names that are hard to bear.
func sampleTree() Manifest {
	script := fileOf("run.sh", "#!/bin/sh\n")
	script.Mode = 0o755
	return treeOf(
		fileOf("\x1b[31mred\n", "r"), fileOf("CASE", "upper"), fileOf("case", "lower"), dirOf("empty"), fileOf("nothing", ""),
		script, dirOf("src"), linkOf("src/up", "../run.sh"), fileOf("src/\xb4\xfa\xc2\xeb.py", "gbk"), fileOf(strings.Repeat("x", NameMax), "long"),
	)
}

// The spelling of a tree never changes: its digest is stored and names it.
func TestSpelling(t *testing.T) {
	const golden = "sha256:8a84a36fdba7c650dcae1843c618c0663698a015bb8fc079fa21999b5c2de8bd"
	if got := sampleTree().Digest(); got != golden {
		t.Errorf("the digest of the sample is %s, was %s", got, golden)
	}
	const empty = "sha256:6c83e7bd521750d54d1e38bdc2194bfc531950fa3077defd9317ba7515b24ee3"
	if got := (Manifest{}).Digest(); got != empty {
		t.Errorf("the digest of an empty tree is %s", got)
	}
}

func TestDecodeReadsWhatEncodeWrote(t *testing.T) {
	for _, m := range []Manifest{{}, sampleTree()} {
		got, err := Decode(m.Encode())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m.Entries, got.Entries); diff != "" && len(m.Entries) > 0 {
			t.Error(diff)
		}
	}
	if m := sampleTree(); m.Files() != 8 || m.Bytes() != 28 || len(m.Chunks()) != 6 {
		t.Errorf("%d files, %d bytes, %d chunks", m.Files(), m.Bytes(), len(m.Chunks()))
	}
}

func TestHostileManifestsAreRefused(t *testing.T) {
	badChunk := fileOf("f", "x")
	badChunk.Chunks[0].Size = 0
	huge := fileOf("f", "x")
	huge.Chunks[0].Size = ChunkSizeMax + 1
	twoSizes := fileOf("f", "x")
	twoSizes.Chunks = append(twoSizes.Chunks, Chunk{Digest: twoSizes.Chunks[0].Digest, Size: 2})
	setuid := fileOf("f", "x")
	setuid.Mode = 0o4755
	for name, test := range map[string]struct {
		tree Manifest
		id   string
	}{
		"traversal":        {treeOf(fileOf("../f", "x")), "tree.path"},
		"inner traversal":  {treeOf(dirOf("a"), fileOf("a/../f", "x")), "tree.path"},
		"absolute":         {treeOf(fileOf("/etc/passwd", "x")), "tree.path"},
		"dot":              {treeOf(fileOf(".", "x")), "tree.path"},
		"empty name":       {treeOf(dirOf("a"), fileOf("a//b", "x")), "tree.path"},
		"ends in a slash":  {treeOf(fileOf("a/", "x")), "tree.path"},
		"empty":            {treeOf(fileOf("", "x")), "tree.path"},
		"zero byte":        {treeOf(fileOf("a\x00b", "x")), "tree.path"},
		"long name":        {treeOf(fileOf(strings.Repeat("n", NameMax+1), "x")), "tree.name_too_long"},
		"long path":        {treeOf(fileOf(strings.Repeat("n/", PathMax/2)+"n", "x")), "tree.path"},
		"twice":            {treeOf(fileOf("f", "x"), fileOf("f", "y")), "tree.order"},
		"out of order":     {treeOf(fileOf("g", "x"), fileOf("f", "y")), "tree.order"},
		"below a file":     {treeOf(fileOf("f", "x"), fileOf("f/g", "y")), "tree.no_parent"},
		"below a link":     {treeOf(dirOf("d"), linkOf("l", "d"), fileOf("l/g", "y")), "tree.no_parent"},
		"below nothing":    {treeOf(fileOf("d/g", "y")), "tree.no_parent"},
		"absolute link":    {treeOf(linkOf("l", "/etc")), "tree.link_out"},
		"link out":         {treeOf(dirOf("d"), linkOf("d/l", "../../etc")), "tree.link_out"},
		"link up a link":   {treeOf(dirOf("d"), dirOf("d/e"), linkOf("d/e/l", "../.."), linkOf("m", "d/e/l/..")), "tree.link_out"},
		"empty link":       {treeOf(linkOf("l", "")), "tree.entry"},
		"zero byte link":   {treeOf(linkOf("l", "a\x00b")), "tree.entry"},
		"empty chunk":      {treeOf(badChunk), "tree.entry"},
		"huge chunk":       {treeOf(huge), "tree.entry"},
		"one of two sizes": {treeOf(twoSizes), "tree.entry"},
		"setuid":           {treeOf(setuid), "tree.entry"},
		"no kind":          {treeOf(Entry{Path: "f", Kind: 9}), "tree.entry"},
		"mode of a link":   {treeOf(Entry{Path: "l", Kind: KindLink, Mode: 0o777, Target: "f"}), "tree.entry"},
		"bytes of a link":  {treeOf(Entry{Path: "l", Kind: KindLink, Target: "f", Chunks: fileOf("f", "x").Chunks}), "tree.entry"},
		"too many":         {Manifest{Entries: make([]Entry, EntriesMax+1)}, "tree.too_many"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := test.tree.Check(); idOf(err) != test.id {
				t.Errorf("Check: %v, want %s", err, test.id)
			}
			if len(test.tree.Entries) > EntriesMax || name == "no kind" || strings.HasSuffix(name, "chunk") || strings.HasPrefix(name, "bytes") || name == "long path" || name == "setuid" {
				return // no bytes spell these
			}
			if _, err := Decode(test.tree.Encode()); idOf(err) != test.id {
				t.Errorf("Decode: %v, want %s", err, test.id)
			}
		})
	}
}

func TestLinksThatStayAreTaken(t *testing.T) {
	for _, target := range []string{"x", "../x", "./../y//z", "..", "../d/", "not/there"} {
		if err := treeOf(dirOf("d"), linkOf("d/l", target)).Check(); err != nil {
			t.Errorf("%s: %v", target, err)
		}
	}
}

// Every byte that is cut off, added or written in a longer way is noticed.
func TestOneTreeHasOneSpelling(t *testing.T) {
	data := sampleTree().Encode()
	for cut := range data {
		if _, err := Decode(data[:cut]); err == nil {
			t.Fatalf("%d of %d bytes were taken", cut, len(data))
		}
	}
	if _, err := Decode(append(bytes.Clone(data), 0)); idOf(err) != "tree.manifest_unreadable" {
		t.Errorf("one byte more: %v", err)
	}
	longer := append([]byte(header), 0x80|1, 0)                                 // the number 1 in two bytes
	longer = append(longer, byte(KindDir), 0xed, 0x03 /* 0755 */, 1, byte('d')) // one directory
	if _, err := Decode(longer); idOf(err) != "tree.manifest_unreadable" {
		t.Errorf("a longer number: %v", err)
	}
	if _, err := Decode(make([]byte, ManifestSizeMax+1)); idOf(err) != "tree.manifest_too_large" {
		t.Errorf("too large: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(sampleTree().Encode())
	f.Add([]byte(header))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Decode(data)
		if err != nil {
			return
		}
		if !bytes.Equal(m.Encode(), data) {
			t.Error("decoded from other bytes than it spells")
		}
		if err := m.Check(); err != nil {
			t.Error(err)
		}
	})
}

func idOf(err error) string {
	var told *structs.Error
	if errors.As(err, &told) {
		return told.ID
	}
	return ""
}

// sampleBytes opens the chunks of sampleTree.
func sampleBytes(_ context.Context, chunk Chunk) (io.ReadCloser, error) {
	for _, content := range []string{"r", "upper", "lower", "#!/bin/sh\n", "gbk", "long"} {
		if DigestOf([]byte(content)) == chunk.Digest {
			return io.NopCloser(strings.NewReader(content)), nil
		}
	}
	return nil, os.ErrNotExist
}

func openDir(t *testing.T, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

func TestUnpack(t *testing.T) {
	dir := t.TempDir()
	m := sampleTree()
	m.Entries[3].Mode = 0o555 // a directory that nobody may write to
	if err := Unpack(t.Context(), m, openDir(t, dir), sampleBytes); err != nil {
		t.Fatal(err)
	}
	for i := range m.Entries {
		entry := &m.Entries[i]
		info, err := os.Lstat(filepath.Join(dir, entry.Path))
		if err != nil {
			t.Fatal(err)
		}
		switch entry.Kind {
		case KindLink:
			if target, _ := os.Readlink(filepath.Join(dir, entry.Path)); target != entry.Target {
				t.Errorf("%q says %q", entry.Path, target)
			}
		default:
			if uint32(info.Mode().Perm()) != entry.Mode || info.IsDir() != (entry.Kind == KindDir) {
				t.Errorf("%q is %v", entry.Path, info.Mode())
			}
		}
	}
	if text, _ := os.ReadFile(filepath.Join(dir, "src/up")); string(text) != "#!/bin/sh\n" {
		t.Errorf("through the link: %q", text)
	}
}

func TestUnpackBelievesNothing(t *testing.T) {
	one := func(content string) func(context.Context, Chunk) (io.ReadCloser, error) {
		return func(context.Context, Chunk) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader(content)), nil
		}
	}
	m := treeOf(fileOf("f", "right"))
	for _, content := range []string{"wrong", "", "righ", "right and more"} {
		if err := Unpack(t.Context(), m, openDir(t, t.TempDir()), one(content)); idOf(err) != "tree.wrong_bytes" {
			t.Errorf("%q was taken: %v", content, err)
		}
	}
	if err := Unpack(t.Context(), treeOf(fileOf("../f", "right")), openDir(t, t.TempDir()), one("right")); idOf(err) != "tree.path" {
		t.Errorf("out of the root: %v", err)
	}
	// What lies there already is neither written over nor followed.
	dir, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(filepath.Join(outside, "g"), filepath.Join(dir, "f")); err != nil {
		t.Fatal(err)
	}
	if err := Unpack(t.Context(), m, openDir(t, dir), one("right")); idOf(err) != "tree.unpack" || !errors.Is(err, os.ErrExist) {
		t.Errorf("over a link: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(outside, "g")); err == nil {
		t.Error("a link was followed")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Unpack(ctx, m, openDir(t, t.TempDir()), one("right")); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

package code

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// servers are servers that have trees, each with its own faults.
type servers struct {
	mu      sync.Mutex
	has     map[string]tree.Manifest // by allocation
	chunks  map[tree.Digest][]byte
	sent    map[tree.Digest]int // how often a chunk was sent
	opened  map[string]int      // how often a server was asked
	faults  map[string]fault
	addrs   []string
	refused error // of allocations that it does not know
}

// fault is what is wrong with a server.
type fault struct {
	away     bool
	silent   bool           // it answers nothing, for ever
	breaks   int            // after so many chunks
	manifest *tree.Manifest // it sends this one
	spoil    func(content []byte) []byte
}

func newServers(addrs ...string) *servers {
	return &servers{
		has: make(map[string]tree.Manifest), chunks: make(map[tree.Digest][]byte), sent: make(map[tree.Digest]int),
		opened: make(map[string]int), faults: make(map[string]fault), addrs: addrs,
		refused: structs.NewError(structs.CodeForbidden, "agent.secrets_not_yours", "alloc", ""),
	}
}

// give lets an allocation's job name a tree.
func (s *servers) give(alloc string, manifest tree.Manifest, chunks map[tree.Digest][]byte) Wanted {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.has[alloc] = manifest
	for digest, content := range chunks {
		s.chunks[digest] = content
	}
	return Wanted{AllocID: alloc, Project: "vision", Tree: manifest.Digest()}
}

func (s *servers) list() []string { return s.addrs }

func (s *servers) ask(ctx context.Context, addr, alloc string) (Source, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened[addr]++
	f := s.faults[addr]
	switch manifest, ok := s.has[alloc]; {
	case f.away:
		return nil, structs.NewError(structs.CodeUnavailable, "rpc.unreachable", "addr", addr, "cause", "away")
	case !ok:
		return nil, s.refused
	default:
		return &source{ctx: ctx, of: s, fault: f, manifest: manifest}, nil
	}
}

type source struct {
	ctx      context.Context // of a stream
	of       *servers
	fault    fault
	manifest tree.Manifest
}

func (s *source) Close() {}

func (s *source) Manifest() (tree.Manifest, error) {
	switch {
	case s.fault.silent:
		<-s.ctx.Done()
		return tree.Manifest{}, s.ctx.Err()
	case s.fault.manifest != nil:
		return *s.fault.manifest, nil
	}
	return s.manifest, nil
}

func (s *source) Chunks(want []tree.Chunk, took func(tree.Chunk, []byte) error) error {
	for i, chunk := range want {
		if s.fault.silent || s.fault.breaks > 0 && i == s.fault.breaks {
			if s.fault.silent {
				<-s.ctx.Done()
			}
			return structs.NewError(structs.CodeUnavailable, "rpc.unreachable", "addr", "it", "cause", "broken off")
		}
		s.of.mu.Lock()
		content, ok := s.of.chunks[chunk.Digest]
		s.of.sent[chunk.Digest]++
		s.of.mu.Unlock()
		if !ok {
			return structs.NewError(structs.CodeUnavailable, "rpc.unreachable", "addr", "it", "cause", "no such chunk")
		}
		if s.fault.spoil != nil {
			content = s.fault.spoil(slices.Clone(content))
		}
		if err := took(chunk, content); err != nil {
			return err
		}
	}
	return nil
}

// a tree of a few files, one of them of several chunks.
func sample(seed uint64) (tree.Manifest, map[tree.Digest][]byte) {
	random := rand.New(rand.NewPCG(seed, 1))
	chunks := make(map[tree.Digest][]byte)
	file := func(path string, mode uint32, contents ...[]byte) tree.Entry {
		entry := tree.Entry{Path: path, Kind: tree.KindFile, Mode: mode}
		for _, content := range contents {
			digest := tree.DigestOf(content)
			chunks[digest] = content
			entry.Chunks = append(entry.Chunks, tree.Chunk{Digest: digest, Size: int64(len(content))})
		}
		return entry
	}
	noise := func(size int) []byte {
		content := make([]byte, size)
		for i := range content {
			content[i] = byte(random.Uint32())
		}
		return content
	}
	both := []byte("in two files")
	return tree.Manifest{Entries: []tree.Entry{
		{Path: "conf", Kind: tree.KindDir, Mode: 0o755},
		file("conf/a.yaml", 0o644, fmt.Appendf(nil, "seed: %d", seed)),
		file("conf/same.yaml", 0o600, both),
		{Path: "empty", Kind: tree.KindDir, Mode: 0o700},
		{Path: "latest", Kind: tree.KindLink, Target: "conf/a.yaml"},
		{Path: "locked", Kind: tree.KindDir, Mode: 0o555},
		file("locked/read.txt", 0o444, both),
		file("model.bin", 0o644, noise(300_000), noise(200_000), noise(1)),
		file("none", 0o644),
		file("run.sh", 0o755, []byte("#!/bin/sh\necho run\n")),
	}}, chunks
}

func nobodys(*os.Root, string) error { return nil }

// node is a store with a clock and a disk that tests move.
type node struct {
	*Store
	dir   string
	now   time.Time
	free  int64
	total int64
}

func newNode(t *testing.T, from *servers, change ...func(*Config)) *node {
	t.Helper()
	n := &node{dir: filepath.Join(t.TempDir(), "code"), now: time.Unix(1_800_000_000, 0), free: 1 << 40, total: 1 << 41}
	n.open(t, from, change...)
	return n
}

// open opens the store, again if it was open.
func (n *node) open(t *testing.T, from *servers, change ...func(*Config)) {
	t.Helper()
	config := Config{
		Dir: n.dir, Ask: from.ask, Servers: from.list, Now: func() time.Time { return n.now },
		Space: func(string) (int64, int64, error) { return n.free, n.total, nil },
	}
	for _, edit := range change {
		edit(&config)
	}
	var err error
	if n.Store, err = Open(config); err != nil {
		t.Fatal(err)
	}
}

// copy makes a copy for an allocation, and returns its directory.
func (n *node) copy(t *testing.T, of Wanted) (string, Made) {
	t.Helper()
	dir, made, err := n.try(t, of)
	if err != nil {
		t.Fatal(err)
	}
	return dir, made
}

func (n *node) try(t *testing.T, of Wanted) (string, Made, error) {
	t.Helper()
	task := t.TempDir()
	root, err := os.OpenRoot(task)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	made, err := n.Copy(t.Context(), of, root, "code", nobodys, nil)
	return filepath.Join(task, "code"), made, err
}

// wantTree fails when a directory is not exactly a tree.
func wantTree(t *testing.T, dir string, manifest tree.Manifest, chunks map[tree.Digest][]byte) {
	t.Helper()
	want := make(map[string]tree.Entry)
	for _, entry := range manifest.Entries {
		want[entry.Path] = entry
	}
	err := filepath.WalkDir(dir, func(path string, found fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		entry, ok := want[name]
		if delete(want, name); !ok {
			t.Errorf("%s is not of the tree", name)
			return nil
		}
		info, err := found.Info()
		if err != nil {
			return err
		}
		switch entry.Kind {
		case tree.KindLink:
			if target, err := os.Readlink(path); err != nil || target != entry.Target {
				t.Errorf("%s leads to %q, %v", name, target, err)
			}
			return nil
		case tree.KindDir:
			if !info.IsDir() {
				t.Errorf("%s is %s", name, info.Mode())
			}
		case tree.KindFile:
			var content []byte
			for _, chunk := range entry.Chunks {
				content = append(content, chunks[chunk.Digest]...)
			}
			got, err := os.ReadFile(path)
			if err != nil || !info.Mode().IsRegular() || !bytes.Equal(got, content) {
				t.Errorf("%s has %d bytes, not the %d of the tree, %v", name, len(got), len(content), err)
			}
			if links := info.Sys().(*syscall.Stat_t).Nlink; links != 1 {
				t.Errorf("%s has %d names", name, links)
			}
		}
		if info.Mode().Perm() != fs.FileMode(entry.Mode) {
			t.Errorf("%s has mode %s, not %o", name, info.Mode(), entry.Mode)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	for name := range want {
		t.Errorf("%s is missing", name)
	}
}

// files lists what lies in a store, below it, without the files in the making.
func (n *node) files(t *testing.T) (lists, chunks []string) {
	t.Helper()
	err := filepath.WalkDir(n.dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil || entry.IsDir():
		case strings.Contains(path, "/"+treesDir+"/"):
			lists = append(lists, path)
		default:
			chunks = append(chunks, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return lists, chunks
}

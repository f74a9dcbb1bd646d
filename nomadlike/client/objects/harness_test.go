package objects

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"nomadlike/nomadlike/client/workspace"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// openStore is the store of a node with one storage, a directory for each kind and
// project.
func openStore(t *testing.T, dir string, change ...func(*Config)) *Store {
	t.Helper()
	config := Config{
		NodeID: "node-1", Log: slog.New(slog.DiscardHandler), Now: time.Now,
		Storages:  []workspace.Storage{{Name: "nas", Path: dir + "/{kind}/{project}"}},
		FreeBytes: func(string) (uint64, error) { return 1 << 40, nil },
	}
	for _, one := range change {
		one(&config)
	}
	s := New(config)
	t.Cleanup(s.Close)
	return s
}

// sample is a directory of somebody, and what is sent of it.
type sample struct {
	dir      string
	manifest tree.Manifest
	source   *tree.Source
}

func sampleOf(t *testing.T, files map[string]string) *sample {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		at := filepath.Join(dir, name)
		mode := os.FileMode(0o644)
		if strings.HasSuffix(name, ".sh") {
			mode = 0o755
		}
		target, isLink := strings.CutPrefix(text, "-> ")
		err := os.MkdirAll(filepath.Dir(at), 0o755)
		switch {
		case err != nil:
		case isLink:
			err = os.Symlink(target, at)
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(at, 0o755)
		default:
			err = os.WriteFile(at, []byte(text), mode)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	m, _, err := tree.Scan(t.Context(), dir, tree.Options{Data: true})
	if err != nil {
		t.Fatal(err)
	}
	source, err := tree.OpenSource(dir, m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = source.Close() })
	return &sample{dir, m, source}
}

// random is a text that nobody has seen.
func random(seed uint64, size int) string {
	text := make([]byte, size)
	chance := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	_, _ = chance.Read(text)
	return string(text)
}

func (s *sample) place(number, base int) structs.DataPlace {
	return structs.DataPlace{Project: "vision", Owner: "li", Kind: structs.StorageDataset, Name: "cifar10", Storage: "nas", Version: number, Base: base, Digest: string(s.manifest.Digest())}
}

func (s *sample) begin(store *Store, place structs.DataPlace, upload string) error {
	data := s.manifest.Encode()
	half := len(data) / 2
	for _, ask := range []structs.DataAsk{
		{Data: data[:half]}, {Offset: int64(half), Data: data[half:], End: true},
	} {
		ask.What, ask.Place, ask.Upload = structs.DataAskManifest, place, upload
		if _, err := store.Answer(context.Background(), &ask); err != nil {
			return err
		}
	}
	return nil
}

func (s *sample) asked() []structs.CodeChunk {
	var asked []structs.CodeChunk
	for _, chunk := range s.manifest.Chunks() {
		asked = append(asked, structs.CodeChunk{Digest: string(chunk.Digest), Size: chunk.Size})
	}
	return asked
}

func (s *sample) missing(store *Store, place structs.DataPlace, upload string) ([]structs.CodeChunk, error) {
	asked := s.asked()
	reply, err := store.Answer(context.Background(), &structs.DataAsk{What: structs.DataAskMissing, Place: place, Upload: upload, Chunks: asked})
	if err != nil {
		return nil, err
	}
	var lacking []structs.CodeChunk
	for _, at := range reply.Missing {
		lacking = append(lacking, asked[at])
	}
	return lacking, nil
}

func (s *sample) put(store *Store, place structs.DataPlace, upload string, chunks []structs.CodeChunk) error {
	var data []byte
	for _, chunk := range chunks {
		read, err := s.source.Read(tree.Chunk{Digest: tree.Digest(chunk.Digest), Size: chunk.Size})
		if err != nil {
			return err
		}
		data = append(data, read...)
	}
	_, err := store.Answer(context.Background(), &structs.DataAsk{What: structs.DataAskPut, Place: place, Upload: upload, Chunks: chunks, Data: data})
	return err
}

func finish(store *Store, place structs.DataPlace, upload string) (*structs.DataReply, error) {
	for {
		reply, err := store.Answer(context.Background(), &structs.DataAsk{What: structs.DataAskFinish, Place: place, Upload: upload})
		if err != nil || reply.Done {
			return reply, err
		}
	}
}

// push brings a sample to a store as the command line does, and returns how many bytes
// were sent.
func (s *sample) push(store *Store, number, base int) (int64, error) {
	place, upload := s.place(number, base), fmt.Sprintf("upload-%d", number)
	if err := s.begin(store, place, upload); err != nil {
		return 0, err
	}
	lacking, err := s.missing(store, place, upload)
	if err != nil {
		return 0, err
	}
	sum := int64(0)
	for _, chunk := range lacking {
		sum += chunk.Size
		if err := s.put(store, place, upload, []structs.CodeChunk{chunk}); err != nil {
			return sum, err
		}
	}
	reply, err := finish(store, place, upload)
	if err == nil && (reply.Files != s.manifest.Files() || reply.Bytes != s.manifest.Bytes()) {
		err = fmt.Errorf("%d files with %d bytes were made", reply.Files, reply.Bytes)
	}
	return sum, err
}

// shown lists a directory: names with their permissions, and short texts.
func shown(t *testing.T, dir string) string {
	t.Helper()
	var lines []string
	err := filepath.WalkDir(dir, func(at string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, at)
		line := fmt.Sprintf("%s %s", info.Mode(), name)
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(at)
			if err != nil {
				return err
			}
			line += " -> " + target
		case info.Mode().IsRegular():
			text, err := os.ReadFile(at)
			if err != nil {
				return err
			}
			if len(text) > 40 {
				text = []byte(tree.DigestOf(text).Short())
			}
			line += " " + string(text)
		}
		lines = append(lines, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

func idOf(err error) string {
	var told *structs.Error
	if errors.As(err, &told) {
		return told.ID
	}
	return fmt.Sprint(err)
}

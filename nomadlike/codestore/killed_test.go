package codestore

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

const killedEnv = "NOMADLIKE_TEST_CODESTORE_DIR"

// TestMain lets the test binary be the process that is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv(killedEnv); dir != "" {
		fmt.Println("error", writeUntilKilled(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// killedTexts are the files of the tree of a number.
func killedTexts(number int) []string {
	chance := rand.New(rand.NewPCG(uint64(number), 7))
	texts := []string{"in all of them"}
	for i := range 1 + chance.IntN(12) {
		texts = append(texts, strings.Repeat(fmt.Sprintf("%d.%d ", number, i), 1+chance.IntN(8000)))
	}
	return texts
}

// writeUntilKilled keeps trees, says which, and sweeps every other one.
func writeUntilKilled(dir string) error {
	s, err := New(Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	first := int(time.Now().UnixNano() & (1<<40 - 1))
	for number := first; ; number++ {
		data, pieces := treeOf(killedTexts(number)...)
		if _, err := s.Put("team-a", pieces); err != nil {
			return err
		}
		digest, err := s.Commit("team-a", data)
		if err != nil {
			return err
		}
		if number%2 == 0 {
			fmt.Println("kept", number)
			continue
		}
		forgotten := func(ref structs.CodeRef) bool { return ref.Digest != string(digest) }
		if _, _, err := s.Sweep(context.Background(), forgotten, -time.Hour); err != nil { // nothing is too young
			return err
		}
	}
}

// TestNothingIsLostWhenKilled kills a process that keeps trees at random moments. What
// it said that it had kept is there and whole; what has a name is whole; what is
// half-written is gone after the next start.
func TestNothingIsLostWhenKilled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "code")
	rounds := 12
	if testing.Short() {
		rounds = 3
	}
	var kept []int
	for range rounds {
		process := exec.CommandContext(t.Context(), os.Args[0])
		process.Env = append(os.Environ(), killedEnv+"="+dir)
		process.Stderr = os.Stderr
		out, err := process.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := process.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for until, said := time.Now().Add(time.Duration(rand.IntN(150))*time.Millisecond), 0; lines.Scan(); {
			number := 0
			if _, err := fmt.Sscanf(lines.Text(), "kept %d", &number); err != nil {
				t.Fatalf("the process said %q", lines.Text())
			}
			kept = append(kept, number)
			if said++; said > 0 && time.Now().After(until) {
				_ = process.Process.Kill()
			}
		}
		if err := process.Wait(); err == nil {
			t.Fatal("the process ended by itself")
		}
		checkKept(t, dir, kept)
	}
	t.Logf("%d trees were kept over %d kills", len(kept), rounds)
}

func checkKept(t *testing.T, dir string, kept []int) {
	t.Helper()
	s, err := New(Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "team-a", newDir)); !os.IsNotExist(err) {
		t.Errorf("half-written files stay: %v", err)
	}
	for _, number := range kept {
		data, pieces := treeOf(killedTexts(number)...)
		ref := structs.CodeRef{Project: "team-a", Digest: string(tree.DigestOf(data))}
		if _, err := s.Manifest(ref); err != nil {
			t.Fatalf("tree %d: %v", number, err)
		}
		for _, piece := range pieces {
			if got, err := readChunk(s, ref, piece.Chunk); err != nil || got != string(piece.Data) {
				t.Fatalf("tree %d: chunk %s: %v", number, piece.Chunk.Digest.Short(), err)
			}
		}
	}
	names, err := fileNames(filepath.Join(dir, "team-a", chunksDir))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names { // also of what was not acknowledged
		data, err := os.ReadFile(filepath.Join(dir, "team-a", chunksDir, name))
		if err != nil || string(tree.DigestOf(data)) != "sha256:"+name {
			t.Fatalf("%s has %d bytes of something else, %v", name, len(data), err)
		}
	}
}

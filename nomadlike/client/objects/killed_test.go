package objects

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"nomadlike/nomadlike/client/workspace"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

const (
	killedEnv  = "NOMADLIKE_TEST_OBJECTS_DIR"
	killedFrom = "NOMADLIKE_TEST_OBJECTS_FROM"
)

// TestMain lets the test binary be the process that is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv(killedEnv); dir != "" {
		fmt.Println("error", sendUntilKilled(dir, os.Getenv(killedFrom)))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// said is what the process that is killed tells of what was acknowledged.
type said struct {
	Number int    // of the version
	Chunk  string // that is kept
	Done   bool   // the version is finished
}

// sendUntilKilled sends directory after directory, each as the next version after the
// last one that has a name, and says what was acknowledged.
func sendUntilKilled(dir, from string) error {
	s := New(Config{NodeID: "node-1", Log: slog.New(slog.DiscardHandler), Now: time.Now, LeastFree: 1, Storages: []workspace.Storage{{Name: "nas", Path: dir}}})
	say := json.NewEncoder(os.Stdout)
	for number := 1; ; number++ {
		if _, err := os.Stat(filepath.Join(dir, "cifar10", fmt.Sprint(number))); err == nil {
			continue
		}
		at := filepath.Join(from, fmt.Sprint(number%8))
		m, _, err := tree.Scan(context.Background(), at, tree.Options{Data: true})
		if err != nil {
			return err
		}
		source, err := tree.OpenSource(at, m)
		if err != nil {
			return err
		}
		one := &sample{dir: at, manifest: m, source: source}
		place, upload := one.place(number, number-1), fmt.Sprintf("upload-%d", number)
		if err := one.begin(s, place, upload); err != nil {
			return err
		}
		lacking, err := one.missing(s, place, upload)
		if err != nil {
			return err
		}
		for _, chunk := range lacking {
			if err := one.put(s, place, upload, []structs.CodeChunk{chunk}); err != nil {
				return err
			}
			if err := say.Encode(said{Number: number, Chunk: chunk.Digest}); err != nil {
				return err
			}
		}
		if _, err := finish(s, place, upload); err != nil {
			return err
		}
		if err := errorsOf(source.Close(), say.Encode(said{Number: number, Done: true})); err != nil {
			return err
		}
	}
}

func errorsOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// TestNothingIsLostWhenKilled kills a process that takes versions at random moments. A
// chunk that was acknowledged is not asked for again; what was finished is whole; and
// whatever has a version's name is whole, too.
func TestNothingIsLostWhenKilled(t *testing.T) {
	dir, from := t.TempDir(), t.TempDir()
	for number := range 8 {
		for file := range 12 {
			at := filepath.Join(from, fmt.Sprint(number), fmt.Sprint("d", file%3))
			seed := uint64(file)
			if file%4 == number%4 {
				seed = uint64(100*number + file) // a quarter is new in each
			}
			if err := errorsOf(os.MkdirAll(at, 0o755), os.WriteFile(filepath.Join(at, fmt.Sprint(file)), []byte(random(seed, 1+int(seed)*977)), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
	}
	rounds := 20
	if testing.Short() {
		rounds = 4
	}
	acknowledged, finished := map[int]map[string]bool{}, map[int]bool{}
	for range rounds {
		process := exec.CommandContext(t.Context(), os.Args[0])
		process.Env = append(os.Environ(), killedEnv+"="+dir, killedFrom+"="+from)
		process.Stderr = os.Stderr
		out, err := process.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := process.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for until := time.Now().Add(time.Duration(rand.IntN(120)) * time.Millisecond); lines.Scan(); {
			var told said
			if err := json.Unmarshal(lines.Bytes(), &told); err != nil {
				t.Fatalf("the process said %q", lines.Text())
			}
			if acknowledged[told.Number] == nil {
				acknowledged[told.Number] = map[string]bool{}
			}
			if told.Done {
				finished[told.Number] = true
			} else {
				acknowledged[told.Number][told.Chunk] = true
			}
			if time.Now().After(until) {
				_ = process.Process.Kill()
			}
		}
		if err := process.Wait(); err == nil {
			t.Fatal("the process ended by itself")
		}
		checkKept(t, dir, from, acknowledged, finished)
	}
	t.Logf("%d versions were finished over %d kills", len(finished), rounds)
}

func checkKept(t *testing.T, dir, from string, acknowledged map[int]map[string]bool, finished map[int]bool) {
	t.Helper()
	s := openStore(t, dir, func(c *Config) { c.Storages = []workspace.Storage{{Name: "nas", Path: dir}} })
	for number := range acknowledged {
		m, _, err := tree.Scan(t.Context(), filepath.Join(from, fmt.Sprint(number%8)), tree.Options{Data: true})
		if err != nil {
			t.Fatal(err)
		}
		one := &sample{manifest: m}
		_, err = os.Stat(filepath.Join(dir, "cifar10", fmt.Sprint(number)))
		switch {
		case err == nil:
			if reply := verified(t, s, one.place(number, 0)); reply.Wrongs != 0 {
				t.Fatalf("version %d: %+v", number, reply)
			}
		case finished[number]:
			t.Fatalf("version %d was finished, and is not there", number)
		default:
			lacking, err := one.missing(s, one.place(number, number-1), fmt.Sprintf("upload-%d", number))
			if err != nil && (idOf(err) != "objects.no_upload" || len(acknowledged[number]) > 0) {
				t.Fatalf("version %d: what was acknowledged is gone: %v", number, err)
			}
			for _, chunk := range lacking {
				if acknowledged[number][chunk.Digest] {
					t.Fatalf("version %d: chunk %s was acknowledged, and is asked for again", number, chunk.Digest)
				}
			}
		}
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"nomadlike/nomadlike/client/data"
)

// What is copied: one large file, as many small ones as a dataset of pictures
// has.
const (
	largeBytes = 512 << 20
	smallFiles = 10_000
	smallBytes = 8 << 10 // on average
)

// copying is one way to copy a directory; every repetition goes to a new place.
// run returns how long it took until somebody could read all of the copy, and
// until all of it was on the disk.
type copying struct {
	name string
	run  func(ctx context.Context, from, to string) (ready, onDisk time.Duration, err error)
}

// program copies by a program, and then lets sync wait for the disk, as
// conv=fsync makes dd do and a sync makes others.
func program(name string, sync func(to string) error, args ...string) copying {
	return copying{name, func(ctx context.Context, from, to string) (ready, onDisk time.Duration, err error) {
		if err := os.Mkdir(to, 0o755); err != nil {
			return 0, 0, err
		}
		line := append([]string{}, args...)
		for i := range line {
			line[i] = os.Expand(line[i], func(name string) string { return map[string]string{"from": from, "to": to}[name] })
		}
		begun := time.Now()
		if out, err := exec.CommandContext(ctx, name, line...).CombinedOutput(); err != nil {
			return 0, 0, fmt.Errorf("run %s: %w: %s", name, err, out)
		}
		ready = time.Since(begun)
		if err := sync(to); err != nil {
			return 0, 0, fmt.Errorf("sync: %w", err)
		}
		return ready, time.Since(begun), nil
	}}
}

// syncFile waits until the one file of a copy is on the disk, syncSystem until
// all of the file system is.
func syncFile(to string) error   { return onFile(filepath.Join(to, "file"), unix.Fsync) }
func syncSystem(to string) error { return onFile(to, unix.Syncfs) }

func onFile(name string, do func(fd int) error) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	return do(int(file.Fd()))
}

// leaveMemory lets the kernel forget the contents of all files of a directory,
// which are on the disk.
func leaveMemory(dir string) error {
	return filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		return onFile(name, func(fd int) error { return unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED) })
	})
}

// enterMemory lets the kernel hold the contents of all files of a directory.
func enterMemory(dir string) error {
	return filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		_, err = io.Copy(struct{ io.Writer }{io.Discard}, file)
		return err
	})
}

// byStore copies as a node does for a job, which starts when the copy is ready.
func byStore() copying {
	return copying{"store", func(ctx context.Context, from, to string) (ready, onDisk time.Duration, err error) {
		begun := time.Now()
		store, err := prepareIn(ctx, from, to)
		if err != nil {
			return 0, 0, err
		}
		ready = time.Since(begun)
		store.Close()
		return ready, time.Since(begun), nil
	}}
}

func prepareIn(ctx context.Context, from, to string) (*data.Store, error) {
	store, err := data.Open(data.Config{Dir: to, BootID: "bench", FreeMin: 0.001})
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(from)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	_, err = store.Prepare(ctx, root, "bench", func(int64, int64) {})
	return store, err
}

// dataFigures compares the preparation of datasets with the programs that
// people would use. The repetitions of all are interleaved, so that a noisy
// machine is noisy for each of them.
//
// What the disk gives to dd is the time until it and its fsync are done; a copy
// of the store counts until its own syncs are done, with the digests of all that
// it read. The source is in memory for both, or for neither of them: that of a
// job mostly is not. How long it takes until a job can read the copy, which may
// be before the disk has it, is compared with dd alone, which then writes to
// memory only and computes no digests.
func dataFigures(ctx context.Context, b *bench) error {
	large, small, err := b.datasets()
	if err != nil {
		return err
	}
	ways := []copying{byStore(), program("dd", syncFile, "if=${from}/file", "of=${to}/file", "bs=1M", "status=none")}
	ready, onDisk, err := b.compare(ctx, "large", large, enterMemory, ways)
	if err != nil {
		return err
	}
	report("data_large_mb_per_s", "MB/s", each(ready["store"], func(_ int, d time.Duration) float64 { return largeBytes / 1e6 / d.Seconds() }))
	report("data_large_of_dd_fsync_percent", "%", ratios(onDisk, "dd", 100))
	report("data_large_of_dd_to_memory_percent", "%", ratios(ready, "dd", 100))
	if _, onDisk, err = b.compare(ctx, "large-cold", large, leaveMemory, ways); err != nil {
		return err
	}
	report("data_large_cold_of_dd_fsync_percent", "%", ratios(onDisk, "dd", 100))

	ways = []copying{byStore(), program("cp", syncSystem, "-r", "${from}/.", "${to}")}
	if _, err := exec.LookPath("rsync"); err == nil {
		ways = append(ways, program("rsync", syncSystem, "-r", "${from}/", "${to}/"))
	} else {
		fmt.Fprintln(os.Stderr, "  rsync is not installed: not compared")
	}
	if ready, onDisk, err = b.compare(ctx, "small", small, enterMemory, ways); err != nil {
		return err
	}
	report("data_small_10000_s", "s", each(ready["store"], func(_ int, d time.Duration) float64 { return d.Seconds() }))
	for _, way := range ways[1:] {
		report("data_small_times_"+way.name, "x", ratios(ready, way.name, 1))
		report("data_small_on_disk_times_"+way.name, "x", ratios(onDisk, way.name, 1))
	}
	return b.again(ctx, small)
}

// again measures what a second job waits for the same data.
func (b *bench) again(ctx context.Context, from string) error {
	to := filepath.Join(b.dir, "again")
	defer os.RemoveAll(to)
	store, err := prepareIn(ctx, from, to)
	if err != nil {
		return err
	}
	defer func() { store.Close() }()
	root, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer root.Close()
	var waits []float64
	for range b.runs {
		begun := time.Now()
		made, err := store.Prepare(ctx, root, "bench", func(int64, int64) {})
		if err != nil {
			return err
		}
		if made.Copied != 0 {
			return fmt.Errorf("the second copy took %d bytes", made.Copied)
		}
		waits = append(waits, float64(time.Since(begun))/1e6)
	}
	report("data_second_job_10000_ms", "ms", waits)
	return nil
}

// compare runs every way once in each round; the first round warms up. What a
// round has made is removed before the next one and not between two ways: a disk
// that is told of freed blocks is slow for a while. But it leaves the memory, so
// that every way gets pages that a virtual machine has used before; source puts
// the source into memory or out of it.
func (b *bench) compare(ctx context.Context, name, from string, source func(dir string) error, ways []copying) (ready, onDisk map[string][]time.Duration, err error) {
	ready, onDisk = make(map[string][]time.Duration), make(map[string][]time.Duration)
	for round := range b.runs + 1 {
		dir := filepath.Join(b.dir, name+"-copies")
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, nil, err
		}
		for i := range ways {
			way := ways[(i+round)%len(ways)]
			if err := source(from); err != nil {
				return nil, nil, err
			}
			first, last, err := way.run(ctx, from, filepath.Join(dir, way.name))
			if err != nil {
				return nil, nil, err
			}
			if err := leaveMemory(filepath.Join(dir, way.name)); err != nil {
				return nil, nil, err
			}
			if round > 0 {
				ready[way.name], onDisk[way.name] = append(ready[way.name], first), append(onDisk[way.name], last)
			}
			fmt.Fprintf(os.Stderr, "  %s, round %d: %s %v, on disk %v\n", name, round, way.name, first.Round(time.Millisecond), last.Round(time.Millisecond))
		}
		if err := errors.Join(os.RemoveAll(dir), syncSystem(b.dir)); err != nil {
			return nil, nil, err
		}
	}
	return ready, onDisk, nil
}

// ratios reports how many times as fast as another way the store was, times
// scale. Whatever comes first in a round is better off, or worse: so each ratio is of
// the sums of as many rounds in a row as there are ways, in which everybody was
// first once.
func ratios(rounds map[string][]time.Duration, other string, scale float64) (values []float64) {
	window := min(len(rounds), len(rounds["store"]))
	for i := range len(rounds["store"]) - window + 1 {
		var ours, theirs time.Duration
		for k := range window {
			ours, theirs = ours+rounds["store"][i+k], theirs+rounds[other][i+k]
		}
		values = append(values, scale*theirs.Seconds()/ours.Seconds())
	}
	return values
}

func each(list []time.Duration, f func(int, time.Duration) float64) []float64 {
	values := make([]float64, len(list))
	for i, d := range list {
		values[i] = f(i, d)
	}
	return values
}

// datasets writes what is copied.
func (b *bench) datasets() (large, small string, err error) {
	chance := rand.NewChaCha8([32]byte{1})
	part := make([]byte, 1<<20)
	_, _ = chance.Read(part)
	large, small = filepath.Join(b.dir, "large"), filepath.Join(b.dir, "small")
	if err := os.Mkdir(large, 0o755); err != nil {
		return "", "", err
	}
	file, err := os.Create(filepath.Join(large, "file"))
	if err != nil {
		return "", "", err
	}
	defer file.Close()
	for range largeBytes / len(part) {
		if _, err := file.Write(part); err != nil {
			return "", "", err
		}
	}
	for i := range smallFiles {
		dir := filepath.Join(small, strconv.Itoa(i%100))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return "", "", err
		}
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), part[i:i+smallBytes/2+i%smallBytes], 0o644); err != nil {
			return "", "", err
		}
	}
	return large, small, syncSystem(b.dir)
}

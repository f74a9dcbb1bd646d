package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

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
// run gives how long it took until somebody could read all of the copy, and
// until all of it was on the disk.
type copying struct {
	name string
	run  func(ctx context.Context, from, to string) (ready, onDisk time.Duration, err error)
}

// program copies by a program, and then lets sync wait for the disk: for one
// file, or for the file system.
func program(name, sync string, args ...string) copying {
	return copying{name, func(ctx context.Context, from, to string) (ready, onDisk time.Duration, err error) {
		if err := os.Mkdir(to, 0o755); err != nil {
			return 0, 0, err
		}
		fill := func(word string) string {
			return os.Expand(word, func(name string) string { return map[string]string{"from": from, "to": to}[name] })
		}
		line := append([]string{}, args...)
		for i := range line {
			line[i] = fill(line[i])
		}
		begun := time.Now()
		if out, err := exec.CommandContext(ctx, name, line...).CombinedOutput(); err != nil {
			return 0, 0, fmt.Errorf("run %s: %w: %s", name, err, out)
		}
		ready = time.Since(begun)
		if out, err := exec.CommandContext(ctx, "sync", strings.Fields(fill(sync))...).CombinedOutput(); err != nil {
			return 0, 0, fmt.Errorf("run sync: %w: %s", err, out)
		}
		return ready, time.Since(begun), nil
	}}
}

// byStore copies as a node does for a job, which starts when the copy is ready.
func byStore() copying {
	return copying{"store", func(ctx context.Context, from, to string) (ready, onDisk time.Duration, err error) {
		begun := time.Now()
		store, _, err := prepareIn(ctx, from, to)
		if err != nil {
			return 0, 0, err
		}
		ready = time.Since(begun)
		store.Close()
		return ready, time.Since(begun), nil
	}}
}

func prepareIn(ctx context.Context, from, to string) (*data.Store, data.Copy, error) {
	store, err := data.Open(data.Config{Dir: to, BootID: "bench", FreeMin: 0.001})
	if err != nil {
		return nil, data.Copy{}, err
	}
	root, err := os.OpenRoot(from)
	if err != nil {
		return nil, data.Copy{}, err
	}
	defer root.Close()
	made, err := store.Prepare(ctx, root, "bench", func(int64, int64) {})
	return store, made, err
}

// dataFigures compares the preparation of datasets with the programs that
// people would use. The repetitions of all are interleaved, so that a noisy
// machine is noisy for each of them, and the ratios are those of one round.
func dataFigures(ctx context.Context, b *bench) error {
	large, small, err := b.datasets()
	if err != nil {
		return err
	}
	ways := []copying{byStore(), program("dd", "${to}/file", "if=${from}/file", "of=${to}/file", "bs=1M", "status=none")}
	ready, onDisk, err := b.compare(ctx, "large", large, ways)
	if err != nil {
		return err
	}
	report("data_large_mb_per_s", "MB/s", each(ready["store"], func(_ int, d time.Duration) float64 { return largeBytes / 1e6 / d.Seconds() }))
	report("data_large_of_dd_percent", "%", ratios(ready, "dd", 100))
	report("data_large_on_disk_of_dd_percent", "%", ratios(onDisk, "dd", 100))

	ways = []copying{byStore(), program("cp", "-f ${to}", "-r", "${from}/.", "${to}")}
	if _, err := exec.LookPath("rsync"); err == nil {
		ways = append(ways, program("rsync", "-f ${to}", "-r", "${from}/", "${to}/"))
	} else {
		fmt.Fprintln(os.Stderr, "  rsync is not installed: not compared")
	}
	if ready, onDisk, err = b.compare(ctx, "small", small, ways); err != nil {
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
	store, _, err := prepareIn(ctx, from, to)
	if err != nil {
		return err
	}
	defer func() { store.Close() }()
	var waits []float64
	for range b.runs {
		begun := time.Now()
		again, made, err := prepareIn(ctx, from, to)
		if err != nil {
			return err
		}
		again.Close()
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
// that is told of freed blocks is slow for a while.
func (b *bench) compare(ctx context.Context, name, from string, ways []copying) (ready, onDisk map[string][]time.Duration, err error) {
	ready, onDisk = make(map[string][]time.Duration), make(map[string][]time.Duration)
	for round := range b.runs + 1 {
		dir := filepath.Join(b.dir, name+"-copies")
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, nil, err
		}
		for i := range ways {
			way := ways[(i+round)%len(ways)]
			first, last, err := way.run(ctx, from, filepath.Join(dir, way.name))
			if err != nil {
				return nil, nil, err
			}
			if round > 0 {
				ready[way.name], onDisk[way.name] = append(ready[way.name], first), append(onDisk[way.name], last)
			}
			fmt.Fprintf(os.Stderr, "  %s, round %d: %s %v, on disk %v\n", name, round, way.name, first.Round(time.Millisecond), last.Round(time.Millisecond))
		}
		if err := errors.Join(os.RemoveAll(dir), exec.CommandContext(ctx, "sync", "-f", b.dir).Run()); err != nil {
			return nil, nil, err
		}
	}
	return ready, onDisk, nil
}

// ratios tells how many times as fast as another way the store was, times
// scale, in each round.
func ratios(rounds map[string][]time.Duration, other string, scale float64) []float64 {
	return each(rounds["store"], func(i int, d time.Duration) float64 { return scale * rounds[other][i].Seconds() / d.Seconds() })
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
	return large, small, exec.Command("sync", "-f", b.dir).Run()
}

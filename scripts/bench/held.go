package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Jobs that a small server holds, and those who hand them in and read.
const (
	heldNodes   = 10
	heldCount   = 20_000
	heldUsers   = 20
	heldReaders = 20
	heldPause   = 100 * time.Millisecond // of a reader, between two questions
	heldRest    = 30 * time.Second       // until a server is measured that has little to do
	heldMemory  = 1 << 30                // of the cgroup of the small server
)

// heldJobs measures the memory of a server that holds very many jobs, and how long
// readers wait while they are submitted: once with the memory of the machine, and
// once within a small cgroup.
func heldJobs(ctx context.Context, b *bench) error {
	if err := holdJobs(ctx, b, "held"); err != nil {
		return err
	}
	cgroup, err := memoryCgroup(heldMemory)
	if err != nil {
		fmt.Fprintln(os.Stderr, "held jobs within 1 GiB is left out:", err)
		return nil
	}
	defer os.Remove(cgroup)
	whole := b.binary
	defer func() { b.binary = whole }()
	b.binary = filepath.Join(b.dir, "bounded-nomadlike")
	script := fmt.Sprintf("#!/bin/sh\necho $$ >%s/cgroup.procs\nexec %s \"$@\"\n", cgroup, whole)
	if err := os.WriteFile(b.binary, []byte(script), 0o755); err != nil {
		return err
	}
	return holdJobs(ctx, b, "held_1gib")
}

func holdJobs(ctx context.Context, b *bench, name string) error {
	f, err := b.newFleet(ctx, heldNodes)
	if err != nil {
		return err
	}
	defer f.close()
	users := make([]*asker, heldUsers)
	for i := range users {
		if users[i], err = f.asker(ctx, fmt.Sprintf("u%02d", i)); err != nil {
			return err
		}
	}
	reading, stop := context.WithCancel(ctx)
	defer stop()
	var (
		readers sync.WaitGroup
		mu      sync.Mutex
		read    []float64
		failed  int
	)
	for i := range heldReaders {
		readers.Go(func() {
			paths := []string{"/v1/jobs?limit=50", "/v1/nodes", "/v1/queue", "/v1/projects"}
			for k := i; reading.Err() == nil; k++ {
				took, err := users[i%len(users)].get(reading, paths[k%len(paths)])
				mu.Lock()
				if err == nil {
					read = append(read, took)
				} else if reading.Err() == nil {
					failed++
				}
				mu.Unlock()
				select {
				case <-reading.Done():
				case <-time.After(heldPause):
				}
			}
		})
	}
	begin := time.Now()
	errs := make([]error, len(users))
	var next atomic.Int64
	var group sync.WaitGroup
	for u, user := range users {
		group.Go(func() {
			for next.Add(1) <= heldCount && errs[u] == nil {
				_, errs[u] = submitPatiently(ctx, user, pictureJob())
			}
		})
	}
	group.Wait()
	took := time.Since(begin)
	stop()
	readers.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	pid := f.w.agents["s1"].cmd.Process.Pid
	report(name+"_submissions_per_s", "1/s", []float64{heldCount / took.Seconds()})
	report(name+"_read_ms", "ms", read)
	if failed > 0 {
		fmt.Fprintln(os.Stderr, failed, "reads failed")
	}
	report(name+"_rss_after_mb", "MB", []float64{residentMB(pid)})
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(heldRest):
	}
	report(name+"_rss_mb", "MB", []float64{residentMB(pid)})
	report(name+"_rss_peak_mb", "MB", []float64{procKB(fmt.Sprintf("/proc/%d/status", pid), "VmHWM:") / 1000 * 1.024})
	return f.problem()
}

// memoryCgroup makes a cgroup of version 1 with so many bytes of memory.
func memoryCgroup(bytes int64) (string, error) {
	dir, err := os.MkdirTemp("/sys/fs/cgroup/memory", "nomadlike-bench-")
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "memory.limit_in_bytes"), []byte(strconv.FormatInt(bytes, 10)), 0o644); err != nil {
		return "", fmt.Errorf("bound %s: %w", dir, err)
	}
	return dir, nil
}

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// run submits a job of project plain that runs a script of the shell on the node
// that is not compromised, and returns its id.
func (t *target) run(ctx context.Context, user *api.Client, name, script string) (string, error) {
	return t.runOn(ctx, user, name, script, filepath.Base(filepath.Dir(t.other)))
}

// runOn is run on a node.
func (t *target) runOn(ctx context.Context, user *api.Client, name, script, node string) (string, error) {
	path := filepath.Join(t.shared, "attack-"+name+".sh")
	if err := os.WriteFile(path, []byte(script), 0o644); err != nil {
		return "", err
	}
	hcl := strings.Replace(plainJob(name).HCL, "\"true\"", fmt.Sprintf("%q", "sh "+path), 1)
	hcl = strings.Replace(hcl, "16MiB", "128MiB", 1)
	hcl = strings.Replace(hcl, "task {", "placement { nodes = [\""+node+"\"] }\n  task {", 1)
	submitted, err := user.SubmitJob(ctx, api.JobRequest{HCL: hcl}, "")
	if err != nil {
		return "", err
	}
	return submitted.JobID, nil
}

// says waits until a job has printed a text.
func (t *target) says(ctx context.Context, user *api.Client, id, text string) error {
	var got string
	for {
		if got = t.file(ctx, user, id, "logs/stdout.0"); strings.Contains(got, text) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the task said %.200q: %w", got, ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// ended waits for a job that fails, and returns why.
func (t *target) ended(ctx context.Context, id string) (string, error) {
	for {
		job, _, err := t.admin.Job(ctx, id, nil)
		if err != nil {
			return "", err
		}
		if job.State.Terminal() {
			return fmt.Sprintf("%s %+v", job.State, job.Reason), nil
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("job %s is %s: %w", id, job.State, ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// fill has a task take more of its node than one may have. scripts/attack.sh
// sets for nodes bounds of 64 MiB, 2,000 files and 4 MiB of logs for a rank.
func (t *target) fill(user *api.Client) {
	nothing := func(context.Context) error { return nil }
	for _, one := range []struct{ name, script, reason string }{
		{"disk", "dd if=/dev/zero of=big bs=1M count=200 2>/dev/null; ls -l big; sleep 600", "room_bytes"},
		{"files", "i=0; while [ $i -lt 4000 ]; do : >f$i; i=$((i+1)); done; ls | wc -l; sleep 600", "room_files"},
	} {
		var id string
		t.line("11 a task that fills its node's disk: "+one.name, "it is ended with the reason of this bound", nothing, func(ctx context.Context) error {
			var err error
			if id, err = t.run(ctx, user, "fill-"+one.name, one.script); err != nil {
				return err
			}
			why, err := t.ended(ctx, id)
			if err == nil && !strings.Contains(why, one.reason) {
				err = fmt.Errorf("it ended %s", why)
			}
			return err
		})
		if id != "" {
			_, _ = t.admin.StopJob(context.Background(), id, api.JobStopRequest{})
		}
	}
	t.line("11 a task that prints without end", "it says that it printed 40 MB", nothing, func(ctx context.Context) error {
		id, err := t.run(ctx, user, "loud", "yes 0123456789abcdef | head -c 40000000; echo; echo all was printed; sleep 600")
		if err != nil {
			return err
		}
		defer func() { _, _ = t.admin.StopJob(context.Background(), id, api.JobStopRequest{}) }()
		list, _, err := t.admin.Allocations(ctx, id, api.AllocationFilter{}, nil)
		for err == nil && len(list.Allocations) == 0 && ctx.Err() == nil {
			time.Sleep(200 * time.Millisecond)
			list, _, err = t.admin.Allocations(ctx, id, api.AllocationFilter{}, nil)
		}
		if err != nil || len(list.Allocations) == 0 {
			return fmt.Errorf("find its rank: %w", err)
		}
		for printed := false; !printed; time.Sleep(200 * time.Millisecond) {
			from, err := t.admin.Logs(ctx, list.Allocations[0].ID, api.LogOptions{Tail: 2})
			if err == nil {
				var end bytes.Buffer
				_, _ = end.ReadFrom(from)
				_ = from.Close()
				printed = strings.Contains(end.String(), "all was printed")
			}
			if ctx.Err() != nil {
				return fmt.Errorf("not tried: it did not print all: %w", ctx.Err())
			}
		}
		size, err := bytesBelow(t.other, list.Allocations[0].ID)
		if err != nil || size == 0 || size > 8<<20 {
			return fmt.Errorf("%d bytes of logs are kept, %v", size, err)
		}
		return nil
	})
	var mark [8]byte
	_, _ = rand.Read(mark[:])
	name := "nl-attack-" + hex.EncodeToString(mark[:])
	t.line("11 files in /dev/shm that outlive their job", "the task says that its file is there", nothing, func(ctx context.Context) error {
		id, err := t.run(ctx, user, "shm", "dd if=/dev/zero of=/dev/shm/"+name+" bs=1M count=8 2>/dev/null; [ -s /dev/shm/"+name+" ] && echo it is there; sleep 600")
		if err != nil {
			return err
		}
		if err := t.says(ctx, user, id, "it is there"); err != nil {
			return fmt.Errorf("not tried: %w", err)
		}
		if _, err := t.admin.StopJob(ctx, id, api.JobStopRequest{}); err != nil {
			return err
		}
		if _, err := t.ended(ctx, id); err != nil {
			return err
		}
		for end := time.Now().Add(5 * time.Second); ; time.Sleep(100 * time.Millisecond) {
			_, err := os.Lstat("/dev/shm/" + name)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if time.Now().After(end) {
				return fmt.Errorf("it is there 5 s after the job, %v", err)
			}
		}
	})
}

// bytesBelow is how much lies in the directories of an allocation.
func bytesBelow(dir, alloc string) (size int64, err error) {
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.Contains(path, alloc) || !entry.Type().IsRegular() {
			return nil // what is gone meanwhile counts nothing
		}
		if info, err := entry.Info(); err == nil {
			size += info.Size()
		}
		return nil
	})
	return size, err
}

// racesMax is how often an administrator's cut is raced.
const racesMax = 40

// races lets a project's administrator write while a cluster administrator takes
// something back.
func (t *target) races() {
	number := func(n int) *int { return &n }
	var rival *api.Client
	before := &structs.Project{Name: "raced", UrgentLimit: number(9)}
	t.line("12 undoing an administrator's cut by a race", "both write what they may; the project's administrator wins some of the races against a description", func(ctx context.Context) error {
		if _, err := t.admin.PutProject(ctx, before); err != nil {
			return err
		}
		made, err := t.admin.CreateToken(ctx, api.TokenRequest{Role: "project-admin", Project: "raced", User: "eve"})
		if err != nil {
			return err
		}
		if rival, err = t.client(made.Secret); err != nil {
			return err
		}
		_, err = rival.PutProject(ctx, &structs.Project{Name: "raced", UrgentLimit: number(9), Description: "ours"})
		return err
	}, func(ctx context.Context) error {
		won := 0
		for i := range racesMax {
			if _, err := t.admin.PutProject(ctx, before); err != nil {
				return err
			}
			var racing sync.WaitGroup
			var cut error
			racing.Go(func() {
				_, cut = t.admin.PutProject(ctx, &structs.Project{Name: "raced", UrgentLimit: number(1)})
			})
			racing.Go(func() {
				if _, err := rival.PutProject(ctx, &structs.Project{Name: "raced", UrgentLimit: number(9), Description: fmt.Sprint("ours ", i)}); err == nil {
					won++
				}
			})
			racing.Wait()
			if cut != nil {
				return fmt.Errorf("the cut itself: %w", cut)
			}
			after, _, err := t.admin.Project(ctx, "raced", nil)
			if err != nil {
				return err
			}
			if limit := after.Project.UrgentLimit; limit == nil || *limit != 1 {
				return fmt.Errorf("in race %d the cut was undone: %+v", i, after.Project)
			}
		}
		fmt.Printf("        the rival was in time in %d of %d races\n", won, racesMax)
		return nil
	})
	t.line("6.48 a snapshot that was changed", "one as it was saved is found good", func(ctx context.Context) error {
		var saved bytes.Buffer
		if _, err := t.admin.SaveSnapshot(ctx, &saved); err != nil {
			return err
		}
		_, err := t.admin.InspectSnapshot(ctx, &saved)
		return err
	}, func(ctx context.Context) error {
		var saved bytes.Buffer
		if _, err := t.admin.SaveSnapshot(ctx, &saved); err != nil {
			return err
		}
		for _, at := range []int{0, saved.Len() / 2, saved.Len() - 1} {
			changed := bytes.Clone(saved.Bytes())
			changed[at] ^= 1
			if _, err := t.admin.RestoreSnapshot(ctx, bytes.NewReader(changed)); err == nil {
				return fmt.Errorf("one with another byte %d was taken", at)
			}
		}
		if _, err := t.admin.RestoreSnapshot(ctx, bytes.NewReader(saved.Bytes()[:saved.Len()/2])); err == nil {
			return errors.New("half of one was taken")
		}
		return nil
	})
}

// both is a cluster of one machine that is server and node: its job looks for
// what the server keeps.
func (t *target) both() {
	secrets := []string{"identity/ca-key.pem", "identity/agent-key.pem", "identity/gossip.key", "join-server", "join-client", "setup-secret"}
	t.line("6 a task on a server's own machine", "root reads at least three of the files here; the task says that it tried", func(context.Context) error {
		seen := 0
		for _, name := range secrets {
			if data, err := os.ReadFile(filepath.Join(t.server, name)); err == nil && len(data) > 0 {
				seen++
			}
		}
		if seen < 3 {
			return fmt.Errorf("%d of the files are there", seen)
		}
		return nil
	}, func(ctx context.Context) error {
		user, err := t.client(t.token)
		if err != nil {
			return err
		}
		var script strings.Builder
		for _, name := range secrets {
			fmt.Fprintf(&script, "[ -n \"$(cat %s 2>/dev/null)\" ] && echo BROKEN read %s\n", filepath.Join(t.server, name), name)
		}
		fmt.Fprintf(&script, "ls -R %s 2>/dev/null | grep -E 'identity|raft|join-|setup|backup' && echo BROKEN listed what the server keeps\n", t.server)
		fmt.Fprintf(&script, "for p in /proc/[0-9]*; do cat $p/environ 2>/dev/null; ls $p/root%s 2>/dev/null; done | grep -aqE 'nl_join|setup-secret|ca-key' && echo BROKEN by a process\necho all was tried; sleep 600\n", t.server)
		id, err := t.run(ctx, user, "both", script.String())
		if err != nil {
			return err
		}
		if err := t.says(ctx, user, id, "all was tried"); err != nil {
			return fmt.Errorf("not tried: %w", err)
		}
		if text := t.file(ctx, user, id, "logs/stdout.0"); strings.Contains(text, "BROKEN") {
			return errors.New(strings.ReplaceAll(text, "\n", "; "))
		}
		return nil
	})
}

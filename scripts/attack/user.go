package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// victim is a job of another project that runs.
func (t *target) victim(ctx context.Context) (jobID, allocID string, err error) {
	t.victims++
	submitted, err := t.admin.SubmitJob(ctx, api.JobRequest{HCL: fmt.Sprintf("job \"victim-%d\" {\n  project = \"victims\"\n  resources {\n    cpu = 0.1\n    memory = \"16MiB\"\n  }\n  placement { nodes = [%q] }\n  task { command = \"sh -c 'echo theirs; exec sleep 3600'\" }\n  stop_grace = \"1s\"\n}\n",
		t.victims, filepath.Base(filepath.Dir(t.other)))}, "")
	if err != nil {
		return "", "", err
	}
	if err := t.await(ctx, submitted.JobID, structs.JobRunning); err != nil {
		return "", "", err
	}
	list, _, err := t.admin.Allocations(ctx, submitted.JobID, api.AllocationFilter{}, nil)
	if err != nil || len(list.Allocations) == 0 {
		return "", "", fmt.Errorf("find its rank: %w", err)
	}
	allocID = list.Allocations[0].ID
	return submitted.JobID, allocID, nil
}

// await waits for a state of a job.
func (t *target) await(ctx context.Context, id string, state structs.JobState) error {
	for {
		job, _, err := t.admin.Job(ctx, id, nil)
		switch {
		case err != nil:
			return err
		case job.State == state:
			return nil
		case job.State.Terminal():
			return fmt.Errorf("job %s is %s", id, job.State)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("job %s is %s: %w", id, job.State, ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// open routes take a secret of their own, or ask without changing anything.
var open = map[string]bool{"session.create": true, "session.delete": true, "tokens.bootstrap": true, "agent.join": true, "agent.renew": true, "nodes.available": true, "queue.what_if": true}

// user has the token of a plain user of project plain.
func (t *target) user() {
	user, err := t.client(t.token)
	if err != nil {
		fmt.Println("BROKEN ", err)
		t.broken++
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	job, alloc, err := t.victim(ctx)
	if err != nil {
		fmt.Println("BROKEN  the victim's job:", err)
		t.broken++
		return
	}
	subject := func(route api.Route) (string, bool) {
		switch route.From {
		case api.FromJob:
			return job, true
		case api.FromAllocation:
			return alloc, true
		}
		return "", false
	}
	t.line("6.2 every route on another project's job and rank", "the administrator reads at least 5 of them", func(ctx context.Context) error {
		seen := 0
		for _, route := range api.Routes() {
			if id, ok := subject(route); ok && !route.Mutates() && route.Stream == api.StreamNone {
				if status, err := t.ask(ctx, route, id, t.adminToken); err == nil && status == http.StatusOK {
					seen++
				}
			}
		}
		if seen < 5 {
			return fmt.Errorf("%d are read", seen)
		}
		return nil
	}, func(ctx context.Context) error {
		for _, route := range api.Routes() {
			id, ok := subject(route)
			if !ok {
				continue
			}
			if status, err := t.ask(ctx, route, id, t.token); err != nil || status != http.StatusNotFound {
				return fmt.Errorf("%s: status %d, %v", route.Name, status, err)
			}
		}
		return nil
	})
	t.line("6.13 every route that changes the cluster", "the administrator changes a pool, which is looked at after", func(ctx context.Context) error {
		_, err := t.admin.PutPool(ctx, &structs.Pool{Name: "watched", Description: "as it was"})
		return err
	}, func(ctx context.Context) error {
		tried := 0
		for _, route := range api.Routes() {
			if !route.Mutates() || route.Kind == api.ObjectJob || open[route.Name] || route.From == api.FromCaller {
				continue
			}
			status, err := t.ask(ctx, route, "watched", t.token)
			if err != nil || status != http.StatusForbidden && status != http.StatusNotFound {
				return fmt.Errorf("%s: status %d, %v", route.Name, status, err)
			}
			tried++
		}
		pool, _, err := t.admin.Pool(ctx, "watched", nil)
		if err != nil || pool.Pool.Description != "as it was" || tried < 10 {
			return fmt.Errorf("%d routes were tried; the pool is %+v, %v", tried, pool, err)
		}
		return nil
	})
	t.line("6.13 making an administrator's token", "the administrator makes one", func(ctx context.Context) error {
		_, err := t.admin.CreateToken(ctx, api.TokenRequest{Role: "admin"})
		return err
	}, func(ctx context.Context) error {
		for _, role := range []string{"admin", "operator", "project-admin"} {
			_, err := user.CreateToken(ctx, api.TokenRequest{Role: role, Project: "plain", User: "mallory"})
			if err := refusedAs(err, structs.CodeForbidden, structs.CodeInvalid, structs.CodeNotFound); err != nil {
				return fmt.Errorf("%s: %w", role, err)
			}
		}
		return nil
	})
	valid := func(request api.JobRequest) func(context.Context) error {
		return func(ctx context.Context) error {
			checked, err := user.ValidateJob(ctx, request)
			if err == nil && len(checked.Problems) > 0 {
				err = errors.New(checked.Problems[0].Message)
			}
			return err
		}
	}
	honest := func(name string) func(context.Context) error { return valid(plainJob(name)) }
	for name, hcl := range map[string]string{
		"2 a task of root":                            change("user = \"root\""),
		"2 a task of uid 0":                           change("user = \"0\""),
		"6.24 a file of the server in a job":          strings.Replace(plainJob("evil").HCL, "\"true\"", "file(\"/etc/shadow\")", 1),
		"6.25 a negative amount of memory":            strings.Replace(plainJob("evil").HCL, "\"16MiB\"", "\"-16MiB\"", 1),
		"6.25 2^63 nodes":                             strings.Replace(plainJob("evil").HCL, "resources {", "nodes = 9223372036854775808\n  resources {", 1),
		"6.26 a name that leads out":                  plainJob("../../etc").HCL,
		"6.26 a name that is an option":               plainJob("-rf").HCL,
		"6.26 a name of 10 kB":                        plainJob(strings.Repeat("a", 10_000)).HCL,
		"6.26 a name that turns the line":             strings.Replace(plainJob("evil").HCL, "\"evil\"", "\"e\u202evil\"", 1),
		"6.23 100,000 nested brackets":                strings.Replace(plainJob("evil").HCL, "\"true\"", strings.Repeat("[", 100_000), 1),
		"6.2 a job in another project":                strings.Replace(plainJob("evil").HCL, "\"plain\"", "\"victims\"", 1),
		"6.30 data outside of every storage":          with("dataset \"d\" {\n    storage = \"default\"\n    source  = \"../../etc/\"\n  }"),
		"6.33 data at an address of the job's choice": with("dataset \"d\" {\n    source = \"http://169.254.169.254/latest/\"\n  }"),
		"6.33 a storage at an address":                with("dataset \"d\" {\n    storage = \"http://127.0.0.1:4646/\"\n  }"),
		"6.35 a container with the node's root":       contained("privileged = true"),
		"6.35 a container with a capability":          contained("cap_add = [\"SYS_ADMIN\"]"),
		"6.35 a container with a device":              contained("devices = [\"/dev/mem\"]"),
		"6.35 a container in the node's pids":         contained("pid = \"host\""),
		"6.35 a container without seccomp":            contained("security_opt = [\"seccomp=unconfined\"]"),
		"6.35 a container with other's volumes":       contained("volumes_from = [\"other\"]"),
		"6.35 a container with a runtime":             contained("runtime = \"/bin/sh\""),
		"6.35 a container with raw arguments":         contained("args = [\"--privileged\"]"),
		"6.35 a container whose image is an option":   strings.Replace(contained(""), "\"busybox\"", "\"--privileged\"", 1),
		"6.30 an output outside of every storage":     strings.Replace(plainJob("evil").HCL, "task {", "output \"/etc\" {}\n  task {", 1),
	} {
		control := honest("evil")
		if strings.Contains(hcl, "\"docker\"") {
			control = valid(api.JobRequest{HCL: contained("")})
		}
		t.line(name, "the same job without it is valid", control, func(ctx context.Context) error {
			begin := time.Now()
			_, err := user.SubmitJob(ctx, api.JobRequest{HCL: hcl}, "")
			if time.Since(begin) > 5*time.Second {
				return fmt.Errorf("answered after %s", time.Since(begin))
			}
			return refusedAs(err, structs.CodeInvalid, structs.CodeForbidden, structs.CodeNotFound, structs.CodeTooLarge)
		})
	}
	t.line("an idempotency key with another name", "the key with the same job gives the same id", func(ctx context.Context) error {
		one, err := user.SubmitJob(ctx, plainJob("keyed"), "the-key")
		if err != nil {
			return err
		}
		again, err := user.SubmitJob(ctx, plainJob("keyed"), "the-key")
		if err == nil && again.JobID != one.JobID {
			err = fmt.Errorf("%s and %s", one.JobID, again.JobID)
		}
		return err
	}, func(ctx context.Context) error {
		_, err := user.SubmitJob(ctx, plainJob("keyed-two"), "the-key")
		if err == nil || !strings.Contains(err.Error(), "keyed-two") || !strings.Contains(err.Error(), "keyed ") {
			return fmt.Errorf("answered %w", err)
		}
		return refusedAs(err, structs.CodeConflict)
	})
	t.line("8 a job file of 64 MB", "a small one is valid", honest("small"), func(ctx context.Context) error {
		_, err := user.SubmitJob(ctx, api.JobRequest{HCL: plainJob("big").HCL + strings.Repeat("# x\n", 16<<20)}, "")
		if err == nil {
			return errors.New("it was taken")
		}
		return nil
	})
	t.line("11 300 previews at once", "an administrator's preview is answered before", func(ctx context.Context) error {
		_, err := t.admin.PlanJob(ctx, plainJob("plan"))
		return err
	}, func(ctx context.Context) error {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		for range 300 {
			go func() {
				for ctx.Err() == nil {
					_, _ = user.PlanJob(ctx, plainJob("plan"))
				}
			}()
		}
		time.Sleep(time.Second)
		begin := time.Now()
		if _, err := t.admin.PlanJob(ctx, plainJob("plan")); err != nil || time.Since(begin) > 5*time.Second {
			return fmt.Errorf("answered after %s: %w", time.Since(begin), err)
		}
		return nil
	})
	t.elsewhere(job, alloc)
	t.account(user)
	t.task(user)
	t.fill(user)
	t.hog(user)
	t.meeting(user)
	t.pages(user, job)
	t.races()
	if _, err := t.admin.StopJob(context.Background(), job, api.JobStopRequest{}); err != nil {
		fmt.Println("BROKEN  stop the victim:", err)
		t.broken++
	}
}

// change is a plain job whose task has one more argument.
func change(argument string) string {
	return strings.Replace(plainJob("evil").HCL, "task { command = \"true\" }", "task {\n    "+argument+"\n    command = \"true\"\n  }", 1)
}

// with is a plain job with one more block.
func with(block string) string {
	return strings.Replace(plainJob("evil").HCL, "task {", block+"\n  task {", 1)
}

// contained is a plain job in a container, with one more argument of its task.
func contained(argument string) string {
	return change("driver = \"docker\"\n    image = \"busybox\"\n    " + argument)
}

// account submits a job of an account that is bound to nobody: where no record of a
// pool binds anybody it is the node that must refuse it.
func (t *target) account(user *api.Client) {
	t.line("2 a task of another account", "the task would say that it runs", func(context.Context) error { return nil }, func(ctx context.Context) error {
		submitted, err := user.SubmitJob(ctx, api.JobRequest{HCL: strings.NewReplacer("\"true\"", "\"echo it runs\"", "\"evil\"", "\"account\"").Replace(change("user = \"daemon\""))}, "")
		if err != nil {
			return refusedAs(err, structs.CodeInvalid, structs.CodeForbidden)
		}
		defer func() { _, _ = t.admin.StopJob(context.Background(), submitted.JobID, api.JobStopRequest{}) }()
		for end := time.Now().Add(15 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
			if text := t.file(ctx, user, submitted.JobID, "logs/stdout.0"); strings.Contains(text, "it runs") {
				return errors.New("it runs")
			}
			job, _, err := t.admin.Job(ctx, submitted.JobID, nil)
			if err != nil {
				return err
			}
			if job.State == structs.JobSucceeded {
				return errors.New("it ran")
			}
			if job.State.Terminal() {
				fmt.Printf("        %s: %+v\n", job.State, job.Reason)
				return nil
			}
		}
		return nil
	})
}

// task runs a job that tries what a task must not.
func (t *target) task(user *api.Client) {
	secrets := []string{
		"/etc/shadow", filepath.Join(t.other, "identity", "agent-key.pem"), filepath.Join(t.other, "identity", "gossip.key"),
		filepath.Join(t.server, "identity", "ca-key.pem"), filepath.Join(t.server, "identity", "init.json"),
	}
	places := []string{"/etc/cron.d/nl-attack", "/root/nl-attack", "/usr/local/bin/nl-attack", filepath.Join(t.other, "nl-attack")}
	var id string
	t.line("1 a task against its node: files, keys, root, links in place of what the agent reads", "root reads each of these files here, and the task says that it tried all; a file of its own log is given out", func(context.Context) error {
		for _, path := range secrets {
			if data, err := os.ReadFile(path); err != nil || len(data) == 0 {
				return fmt.Errorf("there is nothing in %s: %w", path, err)
			}
		}
		return nil
	}, func(ctx context.Context) error {
		var script strings.Builder
		for _, path := range secrets {
			fmt.Fprintf(&script, "[ -n \"$(cat %s 2>/dev/null)\" ] && echo BROKEN read %s\n", path, path)
		}
		for _, path := range places {
			fmt.Fprintf(&script, "(echo x >%s) 2>/dev/null && echo BROKEN wrote %s\n", path, path)
		}
		fmt.Fprintf(&script, "[ \"$(id -u)\" != 0 ] || echo BROKEN is root\nkill -0 1 2>/dev/null && [ \"$(cat /proc/1/comm)\" = nomadlike ] && echo BROKEN may kill the agent\n"+
			"for d in . .. ../logs logs; do ln -sfn %s $d/identity 2>/dev/null; mv $d/logs $d/logs.real 2>/dev/null && ln -s %s $d/logs; done\necho all was tried; exec sleep 600\n",
			filepath.Join(t.other, "identity"), filepath.Join(t.other, "identity"))
		path := filepath.Join(t.shared, "attack-task.sh")
		if err := os.WriteFile(path, []byte(script.String()), 0o644); err != nil {
			return err
		}
		hcl := strings.Replace(plainJob("attack-task").HCL, "\"true\"", fmt.Sprintf("%q", "sh "+path), 1)
		hcl = strings.Replace(hcl, "task {", "placement { nodes = [\""+filepath.Base(filepath.Dir(t.other))+"\"] }\n  task {", 1)
		submitted, err := user.SubmitJob(ctx, api.JobRequest{HCL: hcl}, "")
		if err != nil {
			return err
		}
		id = submitted.JobID
		if err := t.await(ctx, id, structs.JobRunning); err != nil {
			return err
		}
		var text string
		for !strings.Contains(text, "all was tried") {
			if text = t.file(ctx, user, id, "logs/stdout.0"); ctx.Err() != nil {
				return fmt.Errorf("the task said %q", text)
			}
			time.Sleep(200 * time.Millisecond)
		}
		if strings.Contains(text, "BROKEN") {
			return errors.New(strings.ReplaceAll(text, "\n", "; "))
		}
		for _, path := range []string{"logs/gossip.key", "logs/agent-key.pem", "logs/identity/gossip.key", "outputs/etc/shadow", "outputs/identity/gossip.key", "logs/../../../../identity/gossip.key", "logs/%2e%2e/identity/gossip.key"} {
			if got := t.file(ctx, user, id, path); got != "" {
				return fmt.Errorf("%s is given out: %.20q", path, got)
			}
		}
		return nil
	})
	if id != "" {
		_, _ = t.admin.StopJob(context.Background(), id, api.JobStopRequest{})
	}
}

// file reads a file of a job, "" where it is refused.
func (*target) file(ctx context.Context, client *api.Client, job, path string) string {
	from, err := client.OpenFile(ctx, job, path, api.FileFilter{}, 0)
	if err != nil {
		return ""
	}
	defer from.Close()
	data, _ := io.ReadAll(io.LimitReader(from, 1<<20))
	return string(data)
}

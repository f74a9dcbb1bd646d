package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// hogMax is within what time another project's job starts and ends on the node
// of a hog.
const hogMax = 20 * time.Second

// hog has a task take what its node has of everything but the disk, beside a job
// of another project. scripts/attack.sh sets for nodes a bound of 512 processes for
// a rank.
func (t *target) hog(user *api.Client) {
	for _, one := range []struct{ name, script, says, reason string }{
		{"processes", `perl -e '$| = 1; while (defined(my $p = fork)) { if (!$p) { exec "sleep", "600" } $n++ } print "$n processes, then: $!\n"; sleep 600'`, "processes, then:", ""},
		{"open files", `perl -e '$| = 1; while (open(my $f, "<", "/dev/null")) { push @f, $f } print scalar(@f), " files, then: $!\n"; sleep 600'`, "files, then:", "oom"},
		{"sockets", `perl -MSocket -e '$| = 1; while (@f < 100000 && socket(my $f, PF_INET, SOCK_STREAM, 0)) { push @f, $f } print scalar(@f), " sockets, then: $!\n"; sleep 600'`, "sockets, then:", "oom"},
		{"memory", `perl -e 'while (1) { push @m, "x" x (1048576 + @m) }'`, "", "oom"},
		{"processors", `for i in 1 2 3 4 5 6 7 8; do while :; do :; done & done; echo eight loops; sleep 600`, "eight loops", ""},
	} {
		var told string
		t.line("6.39 a task that takes all of its node: "+one.name, "the task says how far it came, or is ended for its memory", func(context.Context) error { return nil }, func(ctx context.Context) error {
			neighbour, _, err := t.victim(ctx)
			if err != nil {
				return err
			}
			id, err := t.run(ctx, user, "hog", one.script)
			if err != nil {
				return err
			}
			defer func() {
				for _, id := range []string{id, neighbour} {
					_, _ = t.admin.StopJob(context.Background(), id, api.JobStopRequest{})
					_, _ = t.ended(context.Background(), id)
				}
			}()
			if told, err = t.cameTo(ctx, user, id, one.says, one.reason); err != nil {
				return fmt.Errorf("not tried: %w", err)
			}
			began := time.Now()
			if err := t.beside(ctx, fmt.Sprintf("beside-%d", began.UnixNano())); err != nil {
				return fmt.Errorf("another's job beside it: %w", err)
			}
			if took := time.Since(began); took > hogMax {
				return fmt.Errorf("another's job beside it took %s", took)
			}
			job, _, err := t.admin.Job(ctx, neighbour, nil)
			if err != nil || job.State != structs.JobRunning || job.Subjobs[0].Attempt != 1 {
				return fmt.Errorf("its neighbour runs no more: %v", err)
			}
			fmt.Printf("        %s; beside it another's job took %s\n", told, time.Since(began).Round(time.Millisecond))
			return nil
		})
	}
}

// cameTo waits until a job has printed a text, or has failed for a reason.
func (t *target) cameTo(ctx context.Context, user *api.Client, id, says, reason string) (string, error) {
	for {
		if says != "" {
			for line := range strings.Lines(t.file(ctx, user, id, "logs/stdout.0")) {
				if strings.Contains(line, says) {
					return strings.TrimSpace(line), nil
				}
			}
		}
		job, _, err := t.admin.Job(ctx, id, nil)
		if err != nil {
			return "", err
		}
		if job.State.Terminal() {
			if why := fmt.Sprintf("%s %+v", job.State, job.Reason); reason == "" || !strings.Contains(why, reason) {
				return "", fmt.Errorf("it ended %s", why)
			}
			return "it was ended for its memory", nil
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// beside runs a short job of another project on the node that is not
// compromised.
func (t *target) beside(ctx context.Context, name string) error {
	submitted, err := t.admin.SubmitJob(ctx, api.JobRequest{HCL: fmt.Sprintf("job %q {\n  project = \"victims\"\n  resources {\n    cpu = 0.1\n    memory = \"16MiB\"\n  }\n  placement { nodes = [%q] }\n  task { command = \"true\" }\n}\n",
		name, filepath.Base(filepath.Dir(t.other)))}, "")
	if err != nil {
		return err
	}
	return t.await(ctx, submitted.JobID, structs.JobSucceeded)
}

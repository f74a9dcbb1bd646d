package docker_test

import (
	"context"
	"fmt"
	osexec "os/exec"
	"sort"
	"testing"
	"time"

	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/drivertest"
)

// BenchmarkStart compares the time from a spec to a running process with
// docker run -d of the same image with the same mounts and limits, one after
// the other in turns; ratio is the figure that counts.
func BenchmarkStart(b *testing.B) {
	d := open(b)
	if _, err := osexec.LookPath("docker"); err != nil {
		b.Skip("the docker command is not installed here: apt-get install docker.io")
	}
	spec := dressed(drivertest.Spec(b, "sleep", "1000"))
	spec.Resources = driver.Resources{CPU: 1, Memory: 256 << 20}
	ctx := context.Background()
	var ours, theirs []time.Duration
	for i := 0; b.Loop(); i++ {
		spec.ID = driver.TaskID(fmt.Sprint("bench-", i))
		began := time.Now()
		if _, err := d.Start(ctx, spec); err != nil {
			b.Fatal(err)
		}
		ours = append(ours, time.Since(began))
		if err := d.Destroy(ctx, spec.ID); err != nil {
			b.Fatal(err)
		}
		name := fmt.Sprint("bench-run-", i)
		run := osexec.Command("docker", "-H", world.endpoint, "run", "-d", "--name", name, "--network", "none", "--cpus", "1", "-m", "256m",
			"--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--pids-limit", "32768",
			"-v", "/usr:/usr:ro", "-v", spec.TaskDir+":"+spec.TaskDir, hostImage, "sleep", "1000")
		began = time.Now()
		if out, err := run.CombinedOutput(); err != nil {
			b.Fatalf("docker run: %v: %s", err, out)
		}
		theirs = append(theirs, time.Since(began))
		if out, err := osexec.Command("docker", "-H", world.endpoint, "rm", "-f", name).CombinedOutput(); err != nil {
			b.Fatalf("docker rm: %v: %s", err, out)
		}
	}
	middle := func(all []time.Duration) float64 {
		sort.Slice(all, func(i, j int) bool { return all[i] < all[j] })
		return float64(all[len(all)/2]) / float64(time.Millisecond)
	}
	b.ReportMetric(middle(ours), "driver_p50_ms")
	b.ReportMetric(middle(theirs), "docker_run_p50_ms")
	b.ReportMetric(middle(ours)/middle(theirs), "ratio")
}

// BenchmarkStats measures one look at a task.
func BenchmarkStats(b *testing.B) {
	d := open(b)
	spec := dressed(drivertest.Spec(b, "sleep", "1000"))
	drivertest.Start(b, d, spec)
	for b.Loop() {
		if _, err := d.Stats(context.Background(), spec.ID); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkExec measures a command in a running task, from call to exit.
func BenchmarkExec(b *testing.B) {
	d := open(b)
	spec := dressed(drivertest.Spec(b))
	spec.Hold = true
	drivertest.Start(b, d, spec)
	for b.Loop() {
		result, err := d.Exec(context.Background(), spec.ID, driver.ExecSpec{Command: []string{"/bin/true"}}, driver.Streams{})
		if err != nil || result.Code != 0 {
			b.Fatalf("%+v, %v", result, err)
		}
	}
}

// BenchmarkOutput measures how fast a task can write to its log.
func BenchmarkOutput(b *testing.B) {
	d := open(b)
	const size = 512 << 20
	b.SetBytes(size)
	i := 0
	for b.Loop() {
		spec := dressed(drivertest.Spec(b, "head", "-c", fmt.Sprint(size), "/dev/zero"))
		spec.ID = driver.TaskID(fmt.Sprint("output-", i))
		i++
		spec.LogRotation = driver.LogRotation{MaxFiles: 2, MaxBytes: 32 << 20}
		drivertest.Start(b, d, spec)
		drivertest.Wait(b, d, spec.ID)
	}
}

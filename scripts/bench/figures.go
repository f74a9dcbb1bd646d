package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

const (
	latencyRuns    = 100
	throughputJobs = 1000
	submitters     = 16
	supervisors    = 20
)

// trivialJob runs command once on one node.
func trivialJob(name, command string) *structs.Job {
	return &structs.Job{
		Name: name, Nodes: 1, Distributed: structs.Distributed{Mode: structs.ModeSingle},
		Resources: []structs.Resources{{CPU: 0.01, Memory: 4 << 20}},
		Task:      structs.Task{Driver: "exec", Command: command},
		StopGrace: structs.Duration(time.Second),
	}
}

func (w *world) submit(ctx context.Context, job *structs.Job) (string, error) {
	submitted, err := w.client.SubmitJob(ctx, api.JobRequest{Job: job}, "")
	if err != nil {
		return "", err
	}
	return submitted.JobID, nil
}

// reach waits, by blocking queries, until the job is in the state or beyond.
func (w *world) reach(ctx context.Context, id string, state structs.JobState) error {
	query := &api.Query{}
	for {
		detail, meta, err := w.client.Job(ctx, id, query)
		if err != nil {
			return err
		}
		if detail.State == state {
			return nil
		}
		if detail.State.Terminal() {
			return fmt.Errorf("job %s is %s (%v), wanted %s", id, detail.State, detail.Reason, state)
		}
		query.Index, query.Wait = meta.Index, 10*time.Second
	}
}

func coldStart(ctx context.Context, b *bench) error {
	var values []float64
	for range b.runs {
		begin := time.Now()
		w, err := b.dev(ctx, "")
		if err != nil {
			return err
		}
		values = append(values, time.Since(begin).Seconds())
		w.stop()
	}
	report("coldstart_ready_s", "s", values)
	return nil
}

func submitLatency(ctx context.Context, b *bench) error {
	w, err := b.dev(ctx, "")
	if w != nil {
		defer w.stop()
	}
	if err != nil {
		return err
	}
	var started, running, complete []float64
	stamp := filepath.Join(w.stage, "stamp")
	for i := range latencyRuns {
		begin := time.Now()
		id, err := w.submit(ctx, trivialJob(fmt.Sprintf("stamp-%d", i), "bash -c 'echo $EPOCHREALTIME > "+stamp+"'"))
		if err != nil {
			return err
		}
		if err := w.reach(ctx, id, structs.JobSucceeded); err != nil {
			return err
		}
		at, err := readStamp(stamp)
		if err != nil {
			return err
		}
		started = append(started, at.Sub(begin).Seconds()*1000)

		begin = time.Now()
		if id, err = w.submit(ctx, trivialJob(fmt.Sprintf("sleep-%d", i), "sleep 1000")); err != nil {
			return err
		}
		if err := w.reach(ctx, id, structs.JobRunning); err != nil {
			return err
		}
		running = append(running, time.Since(begin).Seconds()*1000)
		if _, err := w.client.StopJob(ctx, id, api.JobStopRequest{}); err != nil {
			return err
		}

		begin = time.Now()
		if id, err = w.submit(ctx, trivialJob(fmt.Sprintf("true-%d", i), "true")); err != nil {
			return err
		}
		if err := w.reach(ctx, id, structs.JobSucceeded); err != nil {
			return err
		}
		complete = append(complete, time.Since(begin).Seconds()*1000)
	}
	report("submit_process_started_ms", "ms", started)
	report("submit_reported_running_ms", "ms", running)
	report("submit_reported_complete_ms", "ms", complete)
	return nil
}

func readStamp(path string) (time.Time, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return time.Time{}, err
	}
	seconds, micros, _ := strings.Cut(strings.TrimSpace(string(data)), ".")
	s, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("parse stamp %q: %w", data, err)
	}
	us, err := strconv.ParseInt(micros, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("parse stamp %q: %w", data, err)
	}
	return time.Unix(s, us*1000), nil
}

// throughput measures isolated tasks and, right after them, raw ones: what
// isolation costs shows in the pair, however fast the machine is at the moment.
func throughput(ctx context.Context, b *bench) error {
	var isolated, raw rates
	for range b.runs {
		if err := isolated.measure(ctx, b, ""); err != nil {
			return err
		}
		if err := raw.measure(ctx, b, `isolation = "raw"`); err != nil {
			return err
		}
	}
	report("throughput_1000jobs_per_s", "1/s", isolated.single)
	report("throughput_batch1000_per_s", "1/s", isolated.batch)
	report("throughput_raw_1000jobs_per_s", "1/s", raw.single)
	report("throughput_raw_batch1000_per_s", "1/s", raw.batch)
	report("rss_idle_mb", "MB", isolated.idle)
	report("rss_after_1000_mb", "MB", isolated.after)
	return nil
}

// rates are a development agent's tasks a second and its memory, a run each.
type rates struct{ single, batch, idle, after []float64 }

// measure runs a thousand jobs, and a batch of a thousand tasks, on an agent of
// its own with these lines in its exec block.
func (r *rates) measure(ctx context.Context, b *bench, exec string) error {
	w, err := b.dev(ctx, exec)
	if w != nil {
		defer w.stop()
	}
	if err != nil {
		return err
	}
	if exec != "" { // raw tasks run only where their pool says so
		pool, _, err := w.client.Pool(ctx, structs.PoolDefault, nil)
		if err != nil {
			return err
		}
		pool.Pool.Raw = true
		if _, err := w.client.PutPool(ctx, &pool.Pool); err != nil {
			return err
		}
	}
	pid := w.agents["dev"].cmd.Process.Pid
	r.idle = append(r.idle, residentMB(pid))
	begin := time.Now()
	if err := w.submitMany(ctx); err != nil {
		return err
	}
	r.single = append(r.single, throughputJobs/time.Since(begin).Seconds())
	r.after = append(r.after, residentMB(pid))
	job := trivialJob("batch", "true")
	job.Type, job.Batch = structs.JobTypeBatch, &structs.Batch{Count: throughputJobs}
	begin = time.Now()
	id, err := w.submit(ctx, job)
	if err != nil {
		return err
	}
	if err := w.reach(ctx, id, structs.JobSucceeded); err != nil {
		return err
	}
	r.batch = append(r.batch, throughputJobs/time.Since(begin).Seconds())
	return nil
}

// submitMany submits the trivial jobs from several submitters at once and
// waits until the last has succeeded.
func (w *world) submitMany(ctx context.Context) error {
	numbers := make(chan int)
	failures := make(chan error, submitters)
	ids := make([]string, throughputJobs)
	var group sync.WaitGroup
	for range submitters {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := range numbers {
				id, err := w.submit(ctx, trivialJob(fmt.Sprintf("many-%d", i), "true"))
				if err != nil {
					select {
					case failures <- err:
					default:
					}
				}
				ids[i] = id
			}
		}()
	}
	for i := range throughputJobs {
		numbers <- i
	}
	close(numbers)
	group.Wait()
	select {
	case err := <-failures:
		return err
	default:
	}
	for _, id := range ids {
		if err := w.reach(ctx, id, structs.JobSucceeded); err != nil {
			return err
		}
	}
	return nil
}

// residentMB is a process's resident memory.
func residentMB(pid int) float64 {
	return procKB(fmt.Sprintf("/proc/%d/status", pid), "VmRSS:") / 1000 * 1.024
}

// cpuSeconds is the processor time that a process has used.
func cpuSeconds(pid int) float64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(data), ") ") // behind the name of the program
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	const ticksPerSecond = 100 // of the figures in /proc, on every Linux that Go runs on
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) / ticksPerSecond
}

// procKB sums the kB of the named lines of a /proc file.
func procKB(path string, names ...string) float64 {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	total := 0.0
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		for _, name := range names {
			if len(fields) >= 2 && fields[0] == name {
				kb, _ := strconv.ParseFloat(fields[1], 64)
				total += kb
			}
		}
	}
	return total
}

// supervisorMemory sums, for each running task, what its supervisor keeps to
// itself (unshared) and its proportional share.
func supervisorMemory(ctx context.Context, b *bench) error {
	w, err := b.dev(ctx, "")
	if w != nil {
		defer w.stop()
	}
	if err != nil {
		return err
	}
	for i := range supervisors {
		id, err := w.submit(ctx, trivialJob(fmt.Sprintf("task-%d", i), "sleep 1000"))
		if err != nil {
			return err
		}
		if err := w.reach(ctx, id, structs.JobRunning); err != nil {
			return err
		}
	}
	var private, proportional []float64
	agent := w.agents["dev"].cmd.Process.Pid
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == agent {
			continue
		}
		cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if !strings.Contains(string(cmdline), "supervisor") {
			continue
		}
		rollup := fmt.Sprintf("/proc/%d/smaps_rollup", pid)
		private = append(private, procKB(rollup, "Private_Clean:", "Private_Dirty:")/1000*1.024)
		proportional = append(proportional, procKB(rollup, "Pss:")/1000*1.024)
	}
	if len(private) < supervisors {
		return fmt.Errorf("found %d supervisors, wanted %d", len(private), supervisors)
	}
	report("task_supervisor_private_mb", "MB", private)
	report("task_supervisor_pss_mb", "MB", proportional)
	return nil
}

func clusterColdStart(ctx context.Context, b *bench) error {
	var values []float64
	for range b.runs {
		w, err := b.newWorld("s1", "s2", "s3", "c1", "c2", "c3")
		if err != nil {
			return err
		}
		begin := time.Now()
		err = w.form(ctx, 3, 3)
		values = append(values, time.Since(begin).Seconds())
		w.stop()
		if err != nil {
			return err
		}
	}
	report("coldstart_3s3c_all_ready_s", "s", values)
	return nil
}

// agentRestart measures from the start of a client's agent after kill -9 to
// the moment when the cluster has its registration with the running task.
func agentRestart(ctx context.Context, b *bench) error {
	w, err := b.cluster(ctx, 1, 1)
	if w != nil {
		defer w.stop()
	}
	if err != nil {
		return err
	}
	id, err := w.submit(ctx, trivialJob("stays", "sleep 1000"))
	if err != nil {
		return err
	}
	if err := w.reach(ctx, id, structs.JobRunning); err != nil {
		return err
	}
	var values []float64
	for range b.runs {
		list, _, err := w.client.Nodes(ctx, nil)
		if err != nil {
			return err
		}
		before := list.Nodes[0].Incarnation
		w.killAgent("c1")
		begin := time.Now()
		if err := w.start("c1"); err != nil {
			return err
		}
		err = until(ctx, 20*time.Second, "the node's next incarnation", func() bool {
			list, _, err := w.client.Nodes(ctx, &api.Query{Stale: true})
			return err == nil && list.Nodes[0].Incarnation > before && list.Nodes[0].Status == structs.NodeReady
		})
		if err != nil {
			return err
		}
		values = append(values, time.Since(begin).Seconds())
		detail, _, err := w.client.Job(ctx, id, nil)
		if err != nil {
			return err
		}
		if detail.State != structs.JobRunning || detail.Attempt != 1 {
			return fmt.Errorf("the task did not survive: %s in attempt %d", detail.State, detail.Attempt)
		}
	}
	report("agent_restart_reattached_s", "s", values)
	return nil
}

// leader names the host of the leader.
func (w *world) leader(ctx context.Context) (string, error) {
	peers, err := w.client.RaftPeers(ctx)
	if err != nil {
		return "", err
	}
	for _, peer := range peers.Peers {
		if peer.Leader {
			return peer.Name, nil
		}
	}
	return "", fmt.Errorf("no leader among %d peers", len(peers.Peers))
}

// failover measures from the kill -9 of the leader, and from the silent loss
// of its machine, to the next accepted job.
func failover(ctx context.Context, b *bench) error {
	killed := func(w *world, leader string) { w.killAgent(leader) }
	lost := func(w *world, leader string) { w.lose(leader) }
	for _, kind := range []struct {
		name string
		end  func(*world, string)
	}{{"failover_accepted_s", killed}, {"failover_lost_machine_accepted_s", lost}} {
		var values []float64
		for run := range b.runs {
			value, err := failoverOnce(ctx, b, run, kind.end)
			if err != nil {
				return err
			}
			values = append(values, value)
		}
		report(kind.name, "s", values)
	}
	return nil
}

func failoverOnce(ctx context.Context, b *bench, run int, end func(*world, string)) (float64, error) {
	w, err := b.cluster(ctx, 3, 1)
	if err != nil {
		return 0, err
	}
	defer w.stop()
	leader, err := w.leader(ctx)
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	end(w, leader)
	_, err = w.submit(ctx, trivialJob(fmt.Sprintf("after-%d", run), "true"))
	return time.Since(begin).Seconds(), err
}

func nodeLoss(ctx context.Context, b *bench) error {
	return lossOf(ctx, b, "nodeloss_running_elsewhere_s", false)
}

func doubleLoss(ctx context.Context, b *bench) error {
	return lossOf(ctx, b, "double_loss_running_elsewhere_s", true)
}

// lossOf loses the node that runs a job, with the leader when both is set,
// and measures until the job's process runs elsewhere: its own stamp says.
func lossOf(ctx context.Context, b *bench, name string, both bool) error {
	var values []float64
	for run := range b.runs {
		value, err := lossOnce(ctx, b, run, both)
		if err != nil {
			return err
		}
		values = append(values, value)
	}
	report(name, "s", values)
	return nil
}

func lossOnce(ctx context.Context, b *bench, run int, both bool) (float64, error) {
	w, err := b.cluster(ctx, 3, 3)
	if w != nil {
		defer w.stop()
	}
	if err != nil {
		return 0, err
	}
	stamp := filepath.Join(w.stage, "stamp")
	id, err := w.submit(ctx, trivialJob(fmt.Sprintf("moves-%d", run), "bash -c 'echo $EPOCHREALTIME > "+stamp+".$NOMADLIKE_ATTEMPT; exec sleep 1000'"))
	if err != nil {
		return 0, err
	}
	if err := w.reach(ctx, id, structs.JobRunning); err != nil {
		return 0, err
	}
	list, _, err := w.client.Allocations(ctx, id, api.AllocationFilter{}, nil)
	if err != nil {
		return 0, err
	}
	leader, err := w.leader(ctx)
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	if both {
		w.lose(leader)
	}
	w.lose(list.Allocations[0].NodeName)
	err = until(ctx, 60*time.Second, "the second attempt", func() bool {
		info, err := os.Stat(stamp + ".2")
		return err == nil && info.Size() > 0
	})
	if err != nil {
		return 0, err
	}
	at, err := readStamp(stamp + ".2")
	if err != nil {
		return 0, err
	}
	return at.Sub(begin).Seconds(), nil
}

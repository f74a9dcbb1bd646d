package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/consensus"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// Bounds of what one agent may use under this load (I30).
const (
	residentMax    = 400 << 20 // bytes
	descriptorsMax = 2000
	threadsMax     = 400
)

// task is a process of a rank, as the machine itself shows it.
type task struct {
	PID     int
	JobID   string
	Job     string
	Attempt string
	Rank    string
	Alloc   string
	Since   string // start time of the process in clock ticks
}

// tasks lists the processes of ranks that this cluster runs, by their own
// environment; what an agent says does not count here.
func (c *cluster) tasks() []task {
	var all []task
	for _, h := range c.clients() {
		for _, pid := range h.processes() {
			environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
			if err != nil {
				continue
			}
			t := task{PID: pid}
			for _, variable := range bytes.Split(environ, []byte{0}) {
				name, value, _ := strings.Cut(string(variable), "=")
				switch name {
				case "NOMADLIKE_JOB_ID":
					t.JobID = value
				case "NOMADLIKE_JOB_NAME":
					t.Job = value
				case "NOMADLIKE_ATTEMPT":
					t.Attempt = value
				case "NOMADLIKE_RANK":
					t.Rank = value
				case "NOMADLIKE_ALLOC_ID":
					t.Alloc = value
				}
			}
			if t.Alloc != "" && t.Attempt != "" {
				all = append(all, t)
			}
		}
	}
	return all
}

// sampler looks at the cluster from outside while it runs.
type sampler struct {
	c      *cluster
	h      *history
	strict map[string]bool // job ids

	mu struct {
		sync.Mutex
		first    map[string]map[string]time.Time // job name and attempt -> rank -> first seen
		frozen   bool                            // a machine stands still: it cannot enforce its leases
		resident map[string]int64                // most, by host
		allocs   map[string]bool                 // that were seen running
		began    map[string]begun                // by job id and attempt
		states   int                             // of servers that were looked through
		voters   map[uint64][]string             // by index of Raft's configuration: who votes
	}
}

func newSampler(c *cluster, h *history) *sampler {
	s := &sampler{c: c, h: h, strict: map[string]bool{}}
	s.mu.first = map[string]map[string]time.Time{}
	s.mu.resident, s.mu.allocs = map[string]int64{}, map[string]bool{}
	s.mu.began, s.mu.voters = map[string]begun{}, map[uint64][]string{}
	return s
}

// run samples until ctx ends.
func (s *sampler) run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { every(ctx, 200*time.Millisecond, s.processes) })
	wg.Go(func() { every(ctx, time.Second, func() { s.promises(ctx); s.voters(ctx) }) })
	wg.Go(func() { every(ctx, 2*time.Second, s.resources) })
	if len(s.h.sought) > 0 { // else at the end: there are many
		wg.Go(func() { every(ctx, 2*time.Second, s.events) })
	}
	wg.Go(func() {
		turn, servers := 0, s.c.servers()
		every(ctx, stateEvery, func() {
			s.state(ctx, servers[turn%len(servers)])
			turn++
		})
	})
	wg.Wait()
}

func (s *sampler) processes() {
	tasks := s.c.tasks()
	s.mu.Lock()
	for _, t := range tasks {
		s.mu.allocs[t.Alloc] = true
		if attempt := t.JobID + "/" + t.Attempt; s.mu.began[attempt].JobID == "" {
			s.mu.began[attempt] = begun{t.JobID, t.Attempt, s.h.now()}
		}
		key := t.Job + "/" + t.Attempt
		if s.mu.first[key] == nil {
			s.mu.first[key] = map[string]time.Time{}
		}
		if s.mu.first[key][t.Rank].IsZero() {
			s.mu.first[key][t.Rank] = time.Now()
		}
	}
	frozen := s.mu.frozen
	s.mu.Unlock()
	if frozen {
		return
	}
	for _, text := range checkTasks(tasks, s.strict) {
		s.h.find("I3", text)
	}
}

// allocs are the allocations that were seen running so far.
func (s *sampler) allocs() map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.mu.allocs)
}

// up is when every rank of the newest attempt of a job that began after a
// moment was seen running; false while there is none.
func (s *sampler) up(job string, ranks int, after time.Time) (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var when time.Time
	for key, seen := range s.mu.first {
		if !strings.HasPrefix(key, job+"/") || len(seen) < ranks {
			continue
		}
		var last, begin time.Time
		for _, at := range seen {
			if at.After(last) {
				last = at
			}
			if begin.IsZero() || at.Before(begin) {
				begin = at
			}
		}
		if begin.After(after) && (when.IsZero() || last.Before(when)) {
			when = last
		}
	}
	return when, !when.IsZero()
}

// begun are the attempts of which processes were seen.
func (s *sampler) begun() []begun {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.mu.began))
}

// events looks through all events there are so far.
func (s *sampler) events() {
	s.h.mu.Lock()
	all, restores := maps.Clone(s.h.mu.events), slices.Clone(s.h.mu.restores)
	s.h.mu.Unlock()
	for _, text := range checkAttempts(all) {
		s.h.find("I2", text)
	}
	for _, text := range checkReports(all, restores) {
		s.h.find("I1", text)
	}
}

// stateEvery is how often the whole state of a server is looked through, one
// after the other: it costs that server a snapshot.
const stateEvery = 3 * time.Second

// state looks through everything that a server has applied, whether it leads or
// not: what must hold in every committed state (I1, I2, I3, I5 to I10), and
// whatever the fault of the time is.
func (s *sampler) state(ctx context.Context, h *host) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	var archive, body bytes.Buffer
	if _, err := h.client.SaveStaleSnapshot(ctx, &archive); err != nil {
		return // it is cut off, down, or busy
	}
	meta, err := consensus.ReadArchive(&archive, &body)
	if err != nil {
		s.h.find("I26", fmt.Sprintf("snapshot of %s: %v", h.name, err))
		return
	}
	store := state.New()
	if err := store.Restore(&body); err != nil {
		s.h.find("I13", fmt.Sprintf("state of %s at index %d: %v", h.name, meta.Index, err))
		return
	}
	var voters []string
	for _, peer := range meta.Peers {
		if peer.Voter {
			voters = append(voters, peer.ID)
		}
	}
	slices.Sort(voters)
	s.mu.Lock()
	s.mu.states++
	before, known := s.mu.voters[meta.ConfigurationIndex]
	s.mu.voters[meta.ConfigurationIndex] = voters
	s.mu.Unlock()
	if known && !slices.Equal(before, voters) {
		s.h.find("I28", fmt.Sprintf("at index %d of %s's configuration %v vote, and %v elsewhere", meta.ConfigurationIndex, h.name, voters, before))
	}
	for _, text := range state.CheckInvariants(store.Snapshot()) {
		invariant, rest, _ := strings.Cut(text, ": ")
		s.h.find(invariant, fmt.Sprintf("state of %s: %s", h.name, rest))
	}
}

// voters reports servers that are peers although they were removed for good (I28).
func (s *sampler) voters(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	gone := s.h.gone()
	peers, err := s.c.all.RaftPeers(ctx)
	if err != nil {
		return
	}
	for _, peer := range peers.Peers {
		if name := gone[peer.ID]; name != "" {
			s.h.find("I28", fmt.Sprintf("%s was removed and is a peer again under its old id", name))
		}
	}
}

// promises looks at what the state promises to whom, node by node.
func (s *sampler) promises(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	nodes, _, err := s.c.all.Nodes(ctx, nil)
	if err != nil {
		return
	}
	for i := range nodes.Nodes {
		detail, _, err := s.c.all.Node(ctx, nodes.Nodes[i].ID, nil)
		if err != nil {
			continue
		}
		for _, text := range checkNode(detail) {
			s.h.find("I6/I7", text)
		}
	}
	if project, _, err := s.c.all.Project(ctx, quotaProject, nil); err == nil {
		if held := project.Held[structs.QuotaCPU]; held > quotaCores*1000 {
			s.h.find("I8", fmt.Sprintf("project %s holds %d thousandths of cores and may hold %d", quotaProject, held, quotaCores*1000))
		}
	}
}

// resources looks at what the agents themselves use.
func (s *sampler) resources() {
	for _, h := range s.c.hosts {
		pid := h.pid()
		if pid == 0 {
			continue
		}
		resident, threads := procStatus(pid)
		descriptors, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		s.mu.Lock()
		s.mu.resident[h.name] = max(s.mu.resident[h.name], resident)
		s.mu.Unlock()
		if resident > residentMax {
			s.h.find("I30", fmt.Sprintf("%s uses more than %d MiB of memory", h.name, residentMax>>20))
		}
		if len(descriptors) > descriptorsMax || threads > threadsMax {
			s.h.find("I30", fmt.Sprintf("%s has more than %d descriptors or %d threads", h.name, descriptorsMax, threadsMax))
		}
	}
}

// procStatus reads resident bytes and threads of a process, 0 when it is gone.
func procStatus(pid int) (resident int64, threads int) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		fields := strings.Fields(value)
		if len(fields) == 0 {
			continue
		}
		n, _ := strconv.ParseInt(fields[0], 10, 64)
		switch name {
		case "VmRSS":
			resident = n << 10
		case "Threads":
			threads = int(n)
		}
	}
	return resident, threads
}

// leftovers reports what is left of tasks when every job has ended (I12).
func (c *cluster) leftovers(allocs map[string]bool) []string {
	var found []string
	for _, t := range c.tasks() {
		found = append(found, fmt.Sprintf("process %d of rank %s of %s, attempt %s", t.PID, t.Rank, t.Job, t.Attempt))
	}
	for _, h := range c.clients() {
		for _, pid := range h.processes() {
			line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			if err != nil || pid == h.pid() {
				continue
			}
			for id := range allocs {
				if bytes.Contains(line, []byte(id)) {
					found = append(found, fmt.Sprintf("process %d of allocation %s on %s", pid, id, h.name))
				}
			}
		}
	}
	return append(found, leftoverCgroups(allocs)...)
}

// leftoverCgroups lists cgroups of allocations that the cluster had; their
// names begin with the allocation's id.
func leftoverCgroups(allocs map[string]bool) []string {
	var found []string
	for _, pattern := range []string{"/sys/fs/cgroup/nomadlike/*", "/sys/fs/cgroup/*/nomadlike/*"} {
		paths, _ := filepath.Glob(pattern)
		for _, path := range paths {
			if id, _, _ := strings.Cut(filepath.Base(path), "."); allocs[id] {
				found = append(found, "cgroup "+path)
			}
		}
	}
	return found
}

// leftoverMounts lists mounts below the cluster's directory besides its disks.
func (c *cluster) leftoverMounts() []string {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return []string{err.Error()}
	}
	disks := map[string]bool{}
	for _, h := range c.hosts {
		disks[h.data()] = true
	}
	var found []string
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasPrefix(fields[1], c.dir+"/") && !disks[fields[1]] {
			found = append(found, "mount "+fields[1])
		}
	}
	return found
}

// replicas reports servers that tell something else than the others at rest (I13). All
// are asked anew until they agree: one may still apply the last entries, and a request
// that everybody gave up may arrive late, out of a machine that was cut off.
func (c *cluster) replicas(ctx context.Context) []string {
	var found []string
	servers := c.servers()
	err := wait(ctx, patient(30*time.Second), "the same of all servers", func(ctx context.Context) bool {
		var differences []string
		first, from := "", ""
		for _, h := range servers {
			text, err := h.tells(ctx)
			switch {
			case err != nil:
				differences = append(differences, fmt.Sprintf("%s does not answer: %v", h.name, err))
			case first == "":
				first, from = text, h.name
			case text != first:
				differences = append(differences, fmt.Sprintf("%s and %s tell different things: %s", from, h.name, difference(first, text)))
			}
		}
		if ctx.Err() == nil { // what is cut short by the end of the patience says less than the try before
			found = differences
		}
		return len(differences) == 0
	})
	switch {
	case err == nil || ctx.Err() != nil: // interrupted, it shows nothing
		return nil
	case len(found) == 0:
		return []string{err.Error()}
	default:
		return found
	}
}

// tells is what a server tells of its own copy of the state.
func (h *host) tells(ctx context.Context) (string, error) {
	jobs, _, err := h.client.Jobs(ctx, api.JobFilter{}, &api.Query{Stale: true, Limit: api.PageSizeMax})
	if err != nil {
		return "", err
	}
	projects, _, err := h.client.Projects(ctx, &api.Query{Stale: true})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for i := range jobs.Jobs {
		job := &jobs.Jobs[i]
		fmt.Fprintln(&b, job.ID, job.Name, job.State, job.Attempt, job.ExitCode, job.SubmittedAt, job.StartedAt, job.FinishedAt)
	}
	for i := range projects.Projects {
		fmt.Fprintln(&b, projects.Projects[i].Project.Name, projects.Projects[i].Project.Description, projects.Projects[i].Project.ModifyIndex)
	}
	return b.String(), nil
}

func difference(a, b string) string {
	left, right := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(left), len(right)) {
		if left[i] != right[i] {
			return fmt.Sprintf("%q and %q", left[i], right[i])
		}
	}
	return fmt.Sprintf("%d and %d lines", len(left), len(right))
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// turn is what one fault did.
type turn struct {
	fault string
	hit   []string
	at    time.Time
	well  time.Duration   // from its end until everything was well
	gap   time.Duration   // longest time without an acknowledged write
	rerun []time.Duration // of gangs that lost a machine: from the fault until the next attempt ran
}

func (t *turn) rerunText() string {
	var b strings.Builder
	for _, d := range t.rerun {
		fmt.Fprintf(&b, "  next attempt after %.1f s", d.Seconds())
	}
	return b.String()
}

// report is what a run tells at its end.
type report struct {
	seed     uint64
	dir      string
	turns    []turn
	findings []finding
	counts   string
}

func (r *report) add(t turn) { r.turns = append(r.turns, t) }

// judge runs the checks over the whole history.
func (r *report) judge(h *history, w *workload, s *sampler, jobs []api.JobSummary) {
	for _, text := range checkRegisters(h.mu.operations) {
		h.find("I21", text)
		r.keepOperations(h.mu.operations)
	}
	found := checkSubmissions(h.mu.submissions, jobs, h.mu.restores)
	for _, invariant := range sortedKeys(found) {
		for _, text := range found[invariant] {
			h.find(invariant, text)
		}
	}
	events := 0
	for _, one := range w.watched {
		events += len(one.Events)
		for _, text := range checkWatcher(one, h.mu.events, h.mu.restores) {
			h.find("I20", text)
		}
	}
	for _, text := range checkAttempts(h.mu.events) {
		h.find("I2", text)
	}
	for _, text := range checkReports(h.mu.events, h.mu.restores) {
		h.find("I1", text)
	}
	for _, text := range checkBegun(s.begun(), h.mu.submissions, h.mu.events, h.mu.restores) {
		h.find("I9", text)
	}
	acts, unsure := w.c.changes(h)
	for _, text := range checkVoters(s.mu.voters, acts, unsure) {
		h.find("I28", text)
	}
	acked, reads := 0, 0
	for _, o := range h.mu.operations {
		if o.Outcome == done && o.Write {
			acked++
		} else if o.Outcome == done && o.Act == "" {
			reads++
		}
	}
	resident := int64(0)
	for _, bytes := range s.mu.resident {
		resident = max(resident, bytes)
	}
	r.counts = fmt.Sprintf("%d faults, %d acknowledged writes, %d reads, %d jobs, %d events to %d watchers, %d states, %d restores, largest agent %d MiB",
		len(r.turns), acked, reads, len(jobs), events, len(w.watched), s.mu.states, len(h.mu.restores), resident>>20)
	r.findings = h.mu.findings
}

// keepOperations writes what was done to the registers beside the logs, for
// whoever looks for the cause of what was found.
func (r *report) keepOperations(operations []operation) {
	data, err := json.MarshalIndent(operations, "", " ")
	if err == nil {
		err = os.WriteFile(filepath.Join(r.dir, "operations.json"), data, 0o600)
	}
	if err != nil {
		say("keep the operations: %v", err)
	}
}

// print writes the report: a table by kind of fault, then what does not hold.
func (r *report) print(w io.Writer) {
	fmt.Fprintf(w, "\n%-24s %5s  %10s  %12s  %s\n", "fault", "times", "well after", "write gap", "next attempt")
	kinds := map[string][]turn{}
	for _, t := range r.turns {
		kinds[t.fault] = append(kinds[t.fault], t)
	}
	names := sortedKeys(kinds)
	for _, name := range names {
		var well, gap time.Duration
		var rerun []time.Duration
		for _, t := range kinds[name] {
			well, gap = max(well, t.well), max(gap, t.gap)
			rerun = append(rerun, t.rerun...)
		}
		next := ""
		if len(rerun) > 0 {
			next = fmt.Sprintf("%.1f s", slices.Max(rerun).Seconds())
		}
		fmt.Fprintf(w, "%-24s %5d  %8.1f s  %10.1f s  %s\n", name, len(kinds[name]), well.Seconds(), gap.Seconds(), next)
	}
	fmt.Fprintf(w, "longest of each kind, in seconds; the gap counts from the fault until the cluster was well again\n\n%s\n", r.counts)
	if len(r.findings) == 0 {
		fmt.Fprintf(w, "seed %d: everything held\n", r.seed)
		return
	}
	sort.SliceStable(r.findings, func(i, j int) bool { return r.findings[i].Invariant < r.findings[j].Invariant })
	for _, f := range r.findings {
		during := ""
		if f.During != "" {
			during = " during " + f.During
		}
		fmt.Fprintf(w, "BROKEN %-8s %6.1f s%s: %s\n", f.Invariant, f.At.Seconds(), during, f.Text)
	}
	fmt.Fprintf(w, "seed %d: %d findings; logs are in %s\n", r.seed, len(r.findings), r.dir)
}

func names(hosts []*host) []string {
	var all []string
	for _, h := range hosts {
		all = append(all, h.name)
	}
	return all
}

// freeze tells the sampler that a machine stands still.
func (s *sampler) freeze(frozen bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.frozen = frozen
}

// ranks are the gangs that stay, by the hosts on which they run.
func (c *cluster) ranks() map[string][]string {
	on := map[string][]string{}
	for _, h := range c.clients() {
		pids := map[int]bool{}
		for _, pid := range h.processes() {
			pids[pid] = true
		}
		for _, t := range c.tasks() {
			if pids[t.PID] && strings.HasPrefix(t.Job, "stayer-") && !slices.Contains(on[t.Job], h.name) {
				on[t.Job] = append(on[t.Job], h.name)
			}
		}
	}
	return on
}

// rerun tells, for each gang that had a rank on a lost machine, how long it took
// from the fault until all ranks of the next attempt were seen.
func (c *cluster) rerun(s *sampler, lost []*host, on map[string][]string, at time.Time) []time.Duration {
	var all []time.Duration
	for _, job := range sortedKeys(on) {
		if !slices.ContainsFunc(lost, func(h *host) bool { return slices.Contains(on[job], h.name) }) {
			continue
		}
		if up, ok := s.up(job, 2, at); ok {
			all = append(all, up.Sub(at))
		}
	}
	return all
}

// exits reports agents that ended by themselves.
func (c *cluster) exits(h *history) {
	for _, one := range c.hosts {
		for _, e := range one.unwanted() {
			h.find("agent", fmt.Sprintf("%s ended by itself with code %d: %s", one.name, e.code, one.lastWords()))
		}
	}
}

// lastWords is the last line of an agent's log.
func (h *host) lastWords() string {
	log, err := os.ReadFile(filepath.Join(h.dir, "agent.log"))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	return lines[len(lines)-1]
}

// panics reports agents whose log shows a crash.
func (c *cluster) panics(h *history) {
	for _, one := range c.hosts {
		log, err := os.ReadFile(filepath.Join(one.dir, "agent.log"))
		if err != nil {
			h.find("nemesis", err.Error())
			continue
		}
		for line := range strings.Lines(string(log)) {
			if strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") {
				h.find("agent", one.name+": "+strings.TrimSpace(line))
			}
		}
	}
}

// changes are the changes of Raft's configuration that the servers logged: the
// indexes of those that were confirmed, and how many were not.
func (c *cluster) changes(h *history) (acts []uint64, unsure int) {
	for _, one := range c.servers() {
		log, err := os.ReadFile(filepath.Join(one.dir, "agent.log"))
		if err != nil {
			h.find("nemesis", err.Error())
			continue
		}
		for line := range strings.Lines(string(log)) {
			var entry struct {
				Msg   string
				Index uint64
			}
			if !strings.Contains(line, "configuration change") || json.Unmarshal([]byte(line), &entry) != nil {
				continue
			}
			switch entry.Msg {
			case "configuration changed":
				acts = append(acts, entry.Index)
			case "configuration change is not confirmed":
				unsure++
			}
		}
	}
	return acts, unsure
}

// tellUnwell says each minute what a cluster that was healed still waits for, until the
// returned function is called: who reads the log of a slow machine sees what is slow.
func (c *cluster) tellUnwell(ctx context.Context, after string) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	healed := time.Now()
	done := make(chan struct{})
	go func() {
		defer close(done)
		every(ctx, time.Minute, func() {
			say("%s after %s: %s; load %.1f of a processor", time.Since(healed).Round(time.Second), after, c.unwell(ctx), slowness())
		})
	}()
	return func() { cancel(); <-done }
}

// unwell says what keeps the cluster from being healthy.
func (c *cluster) unwell(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	health, err := c.all.Autopilot(ctx)
	if err != nil {
		return err.Error()
	}
	var bad []string
	for _, server := range health.Servers {
		if !server.Healthy {
			bad = append(bad, fmt.Sprintf("server %s is %s, voter %t", server.Name, server.Status, server.Voter))
		}
	}
	bad = append(bad, fmt.Sprintf("%d servers, tolerance %d", len(health.Servers), health.FailureTolerance))
	nodes, _, err := c.all.Nodes(ctx, nil)
	if err != nil {
		return err.Error()
	}
	for i := range nodes.Nodes {
		if node := &nodes.Nodes[i]; !node.Schedulable() {
			bad = append(bad, fmt.Sprintf("node %s is %s %s %v", node.Name, node.Status, node.Eligibility, node.Faults))
		}
	}
	for _, kind := range []structs.KeyKind{structs.KeyGossip, structs.KeyCA} {
		if keys, err := c.all.Keys(ctx, kind); err == nil && !keys.Settled {
			bad = append(bad, fmt.Sprintf("keys of %s wait for %v", kind, keys.Waiting))
		}
	}
	return strings.Join(bad, "; ")
}

package main

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// The checks are functions of what was recorded: they run when all is over, and
// each has a test with a history that it must refuse.

// registerModel is a register: a read returns what was written last.
var registerModel = porcupine.Model{
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		o := input.(operation)
		if o.Write {
			return true, o.Value
		}
		return o.Value == state.(string), state
	},
	Equal: func(a, b any) bool { return a == b },
}

// linearizableMax bounds the search for an order of one register's operations.
const linearizableMax = 20 * time.Second

// checkRegisters reports registers whose operations have no order that explains
// them (I4, I21). Reads without an answer and writes that surely did nothing
// say nothing; a write of unknown outcome may take effect at any later time.
func checkRegisters(operations []operation) []string {
	byKey := map[string][]porcupine.Operation{}
	for i, o := range operations {
		if o.Outcome == failed || o.Outcome == unknown && !o.Write {
			continue
		}
		returned := o.Return
		if o.Outcome == unknown {
			returned = forever
		}
		byKey[o.Key] = append(byKey[o.Key], porcupine.Operation{ClientId: i, Input: o, Call: o.Call, Return: returned})
	}
	var found []string
	for _, key := range sortedKeys(byKey) {
		switch porcupine.CheckOperationsTimeout(registerModel, byKey[key], linearizableMax) {
		case porcupine.Illegal:
			found = append(found, fmt.Sprintf("no order explains the %d operations on %s: %s", len(byKey[key]), key, firstOdd(byKey[key])))
		case porcupine.Unknown:
			found = append(found, fmt.Sprintf("no order of the %d operations on %s was found within %s, nor that there is none", len(byKey[key]), key, linearizableMax))
		case porcupine.Ok:
		}
	}
	return found
}

// firstOdd points at the operation with which a history stops being explicable:
// the last one of the shortest prefix, by return, that has no order.
func firstOdd(operations []porcupine.Operation) string {
	slices.SortFunc(operations, func(a, b porcupine.Operation) int { return int(min(1, max(-1, a.Return-b.Return))) })
	n := sort.Search(len(operations), func(i int) bool {
		last := operations[i].Return
		var prefix []porcupine.Operation
		for _, o := range operations {
			if o.Return <= last {
				prefix = append(prefix, o)
			} else if o.Input.(operation).Write && o.Call <= last { // begun by then: it may have happened
				o.Return = forever
				prefix = append(prefix, o)
			}
		}
		return porcupine.CheckOperationsTimeout(registerModel, prefix, linearizableMax) == porcupine.Illegal
	})
	if n == len(operations) {
		return "only the whole has none"
	}
	o := operations[n].Input.(operation)
	verb := "read"
	if o.Write {
		verb = "write"
	}
	return fmt.Sprintf("first at the %s of %q through %s, %s to %s", verb, o.Value, o.Via, time.Duration(o.Call).Round(time.Millisecond), time.Duration(o.Return).Round(time.Millisecond))
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

// checkSubmissions reports acknowledged jobs that are missing or ended otherwise
// than they should (I4, I10, I11), and keys that made two jobs (I5).
func checkSubmissions(submissions []*submission, jobs []api.JobSummary) map[string][]string {
	found := map[string][]string{}
	byID, byName := map[string]*api.JobSummary{}, map[string]int{}
	for i := range jobs {
		byID[jobs[i].ID] = &jobs[i]
		byName[jobs[i].Name]++
	}
	for _, s := range submissions {
		if count := byName[s.Name]; count > 1 {
			found["I5"] = append(found["I5"], fmt.Sprintf("key %s made %d jobs", s.Key, count))
		}
		if s.ID == "" {
			continue
		}
		job := byID[s.ID]
		switch {
		case job == nil:
			found["I4"] = append(found["I4"], fmt.Sprintf("job %s (%s) was acknowledged and is not there", s.Name, s.ID))
		case !job.State.Terminal():
			found["I11"] = append(found["I11"], fmt.Sprintf("job %s is %s at the end", s.Name, job.State))
		case s.Lasting && job.State != structs.JobStopped:
			found["I10"] = append(found["I10"], fmt.Sprintf("job %s was stopped and is %s: %s", s.Name, job.State, reason(job)))
		case !s.Lasting && job.State != structs.JobSucceeded:
			found["I10"] = append(found["I10"], fmt.Sprintf("job %s does nothing that can fail and is %s: %s", s.Name, job.State, reason(job)))
		}
	}
	return found
}

func reason(job *api.JobSummary) string {
	if job.Reason == nil {
		return "without a reason"
	}
	return fmt.Sprintf("%s %v", job.Reason.ID, job.Reason.Params)
}

// checkWatcher reports events that one watcher got twice, out of order or not at
// all between its first and its last (I20); all are the events that anybody got.
func checkWatcher(w *watched, all map[position]structs.Event) []string {
	var found []string
	got := map[position]bool{}
	var last position
	for i, e := range w.Events {
		at := position{e.Index, e.Seq}
		if i > 0 && !before(last, at) {
			found = append(found, fmt.Sprintf("%s got event %d.%d after %d.%d", w.Name, at.Index, at.Seq, last.Index, last.Seq))
		}
		got[at], last = true, at
	}
	if len(w.Events) == 0 {
		return append(found, w.Name+" got no event at all")
	}
	first := position{w.Events[0].Index, w.Events[0].Seq}
	var missing []string
	for at, event := range all {
		if !before(at, first) && !before(last, at) && !got[at] {
			missing = append(missing, fmt.Sprintf("%d.%d %s %s", at.Index, at.Seq, event.ID, event.JobID))
		}
	}
	sort.Strings(missing)
	if len(missing) > 0 {
		found = append(found, fmt.Sprintf("%s missed %d of %d events, such as %s", w.Name, len(missing), len(all), strings.Join(missing[:min(3, len(missing))], ", ")))
	}
	return found
}

func before(a, b position) bool { return a.Index < b.Index || a.Index == b.Index && a.Seq < b.Seq }

// checkAttempts reports attempts that were placed twice, or out of order (I2).
func checkAttempts(all map[position]structs.Event) []string {
	places := make([]position, 0, len(all))
	for at := range all {
		places = append(places, at)
	}
	slices.SortFunc(places, func(a, b position) int {
		if before(a, b) {
			return -1
		}
		return 1
	})
	type subjob struct {
		job string
		n   int
	}
	newest := map[subjob]uint64{}
	var found []string
	for _, at := range places {
		event := all[at]
		if event.ID != eventStarting {
			continue
		}
		key := subjob{event.JobID, event.Subjob}
		if event.Attempt <= newest[key] {
			found = append(found, fmt.Sprintf("attempt %d of job %s was placed at index %d after attempt %d", event.Attempt, event.JobID, at.Index, newest[key]))
		}
		newest[key] = event.Attempt
	}
	return found
}

// eventStarting is the message of a placed attempt.
const eventStarting = "event.job.starting"

// checkNode reports what is promised twice or too much of one node (I6, I7).
func checkNode(detail *api.NodeDetail) []string {
	var found []string
	cpu, memory := 0.0, int64(0)
	devices, ports := map[string]string{}, map[int]string{}
	for i := range detail.Allocations {
		a := &detail.Allocations[i]
		if !a.HoldsResources() {
			continue
		}
		cpu += a.Spec.CPU
		memory += int64(a.Spec.Memory)
		for _, device := range a.Devices {
			if other := devices[device]; other != "" {
				found = append(found, fmt.Sprintf("device %s of %s is held by allocations %s and %s", device, detail.Name, other, a.ID))
			}
			devices[device] = a.ID
		}
		for _, port := range a.Ports {
			if other := ports[port]; other != "" {
				found = append(found, fmt.Sprintf("port %d of %s is held by allocations %s and %s", port, detail.Name, other, a.ID))
			}
			ports[port] = a.ID
		}
	}
	const rounding = 1e-6
	if cpu > detail.Capacity.CPU+rounding || memory > detail.Capacity.Memory {
		found = append(found, fmt.Sprintf("node %s has %.2f cores and %d bytes, and allocations hold %.2f and %d", detail.Name, detail.Capacity.CPU, detail.Capacity.Memory, cpu, memory))
	}
	return found
}

// checkTasks reports ranks that run in two attempts at one moment although their
// job is fenced strictly (I3).
func checkTasks(tasks []task, strict map[string]bool) []string {
	type rank struct {
		job string
		n   string
	}
	attempts := map[rank]string{}
	var found []string
	for _, t := range tasks {
		if !strict[t.JobID] {
			continue
		}
		key := rank{t.JobID, t.Rank}
		if other := attempts[key]; other != "" && other != t.Attempt {
			found = append(found, fmt.Sprintf("rank %s of %s runs as attempt %s and as attempt %s", t.Rank, t.Job, other, t.Attempt))
		}
		attempts[key] = t.Attempt
	}
	return found
}

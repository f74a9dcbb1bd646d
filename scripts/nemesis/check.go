package main

import (
	"fmt"
	"maps"
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

// register is the value that was written last, and the one that was saved.
type register struct{ now, saved string }

// registerModel is a register: a read returns what was written last, or what was
// saved when that was brought back since.
var registerModel = porcupine.Model{
	Init: func() any { return register{} },
	Step: func(state, input, output any) (bool, any) {
		o, r := input.(operation), state.(register)
		switch {
		case o.Act == save:
			r.saved = r.now
		case o.Act == bring:
			r.now = r.saved
		case o.Write:
			r.now = o.Value
		default:
			return o.Value == r.now, r
		}
		return true, r
	},
	Equal: func(a, b any) bool { return a == b },
}

// linearizableMax bounds the search for an order of one register's operations.
const linearizableMax = time.Minute

// checkRegisters reports registers whose operations have no order that explains
// them (I4, I21). Reads without an answer and writes that surely did nothing
// say nothing; a write of unknown outcome may take effect at any later time, and
// one whose value nobody has read may stand behind everything: it is left out,
// since each such write doubles the search.
func checkRegisters(operations []operation) []string {
	byKey := map[string][]porcupine.Operation{}
	var ofAll []porcupine.Operation
	read := map[[2]string]bool{} // key and value
	for _, o := range operations {
		if o.Outcome == done && !o.Write && o.Act == "" {
			read[[2]string{o.Key, o.Value}] = true
		}
	}
	for i, o := range operations {
		if o.Outcome == failed || o.Outcome == unknown && o.Act == "" && (!o.Write || !read[[2]string{o.Key, o.Value}]) {
			continue
		}
		returned := o.Return
		if o.Outcome == unknown {
			returned = forever
		}
		recorded := porcupine.Operation{ClientId: i, Input: o, Call: o.Call, Return: returned}
		if o.Act != "" {
			ofAll = append(ofAll, recorded)
			continue
		}
		byKey[o.Key] = append(byKey[o.Key], recorded)
	}
	var found []string
	for _, key := range sortedKeys(byKey) {
		byKey[key] = append(byKey[key], ofAll...)
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
			} else if (o.Input.(operation).Write || o.Input.(operation).Act != "") && o.Call <= last { // begun by then: it may have happened
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
	} else if o.Act != "" {
		verb = string(o.Act)
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
// than they should (I4, I10, I11), and keys that made two jobs (I5). Jobs that a
// restore took back may be missing.
func checkSubmissions(submissions []*submission, jobs []api.JobSummary, restores []restored) map[string][]string {
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
		case job == nil && mayBeGone(s, restores):
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
// Events of a state that was given up reach whoever watched then.
func checkWatcher(w *watched, all map[position]structs.Event, restores []restored) []string {
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
		if !before(at, first) && !before(last, at) && !got[at] && !isUndone(at, restores) {
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
	type subjob struct {
		job string
		n   int
	}
	newest := map[subjob]uint64{}
	var found []string
	for _, at := range inOrder(all) {
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

// Messages that say how far an attempt is.
const (
	eventStarting = "event.job.starting"     // it was placed
	eventReleased = "event.attempt.released" // all ranks of its gang are prepared and may begin
)

// eventsCounted are of reports that count: a rank of an attempt that another one
// has replaced must not be heard any more.
var eventsCounted = []string{"event.alloc.running", "event.alloc.complete", "event.alloc.failed", "event.job.running", "event.job.succeeded", eventReleased}

// checkReports reports ranks that were heard for an attempt after a newer one
// was placed (I1). A placement of a state that was given up is none: what runs for
// the attempt that the state knows which came back goes on.
func checkReports(all map[position]structs.Event, restores []restored) []string {
	type subjob struct {
		job string
		n   int
	}
	newest := map[subjob]uint64{}
	var found []string
	for _, at := range inOrder(all) {
		event := all[at]
		key := subjob{event.JobID, event.Subjob}
		if event.ID == eventStarting {
			if !isUndone(at, restores) {
				newest[key] = max(newest[key], event.Attempt)
			}
		} else if event.Attempt != 0 && event.Attempt < newest[key] && slices.Contains(eventsCounted, event.ID) {
			found = append(found, fmt.Sprintf("%s of attempt %d of job %s counts at index %d, and attempt %d was placed", event.ID, event.Attempt, event.JobID, at.Index, newest[key]))
		}
	}
	return found
}

// inOrder are the places of events, the oldest first.
func inOrder(all map[position]structs.Event) []position {
	return slices.SortedFunc(maps.Keys(all), func(a, b position) int {
		if before(a, b) {
			return -1
		}
		return 1
	})
}

// begun is an attempt of which processes were seen, and when the first.
type begun struct {
	JobID   string
	Attempt string
	At      int64 // nanoseconds since the run began
}

// checkBegun reports attempts with processes that were never placed, and gangs
// that began before all their ranks were ready (I9).
func checkBegun(attempts []begun, submissions []*submission, all map[position]structs.Event, restores []restored) []string {
	nodes := map[string]int{}
	for _, s := range submissions {
		nodes[s.ID] = s.Nodes
	}
	told := map[string]bool{}
	for _, event := range all {
		told[fmt.Sprintf("%s %s/%d", event.ID, event.JobID, event.Attempt)] = true
	}
	var found []string
	for _, b := range attempts {
		// What is told of an attempt of a state that was given up is gone with it.
		if slices.ContainsFunc(restores, func(r restored) bool { return b.At >= r.Saved-int64(goesOnAfter) && b.At-int64(goesOnAfter) <= r.Done }) {
			continue
		}
		if !told[eventStarting+" "+b.JobID+"/"+b.Attempt] {
			found = append(found, fmt.Sprintf("attempt %s of job %s ran and was never placed", b.Attempt, b.JobID))
		} else if nodes[b.JobID] > 1 && !told[eventReleased+" "+b.JobID+"/"+b.Attempt] {
			found = append(found, fmt.Sprintf("attempt %s of job %s ran before all its ranks were ready", b.Attempt, b.JobID))
		}
	}
	return found
}

// checkNode reports what is promised twice or too much of one node (I6, I7).
func checkNode(detail *api.NodeDetail) []string {
	var found []string
	cpu, memory := 0.0, int64(0)
	devices, ports := map[string]string{}, map[int]string{}
	for i := range detail.Allocations {
		a := &detail.Allocations[i]
		if !a.OccupiesNode() {
			continue
		}
		cpu += a.Spec.CPU
		memory += a.Spec.Memory
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

// checkVoters reports configurations of Raft between which more voters changed
// than there were changes (I28): acts are the indexes of those that were
// confirmed, unsure is how many may or may not have happened.
func checkVoters(voters map[uint64][]string, acts []uint64, unsure int) []string {
	var found []string
	indexes := slices.Sorted(maps.Keys(voters))
	for i := 1; i < len(indexes); i++ {
		from, to := indexes[i-1], indexes[i]
		changed, allowed := 0, unsure
		for _, id := range voters[from] {
			if !slices.Contains(voters[to], id) {
				changed++
			}
		}
		for _, id := range voters[to] {
			if !slices.Contains(voters[from], id) {
				changed++
			}
		}
		for _, at := range acts {
			if at > from && at <= to {
				allowed++
			}
		}
		if changed > allowed {
			found = append(found, fmt.Sprintf("%d voters changed from index %d (%v) to %d (%v) by %d changes", changed, from, voters[from], to, voters[to], allowed))
		}
	}
	return found
}

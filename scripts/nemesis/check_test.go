package main

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

func write(value string, call, back int64, known outcome) operation {
	return operation{Key: "r", Write: true, Value: value, Call: call, Return: back, Outcome: known}
}

func read(value string, call, back int64) operation {
	return operation{Key: "r", Value: value, Call: call, Return: back}
}

func TestRegistersThatHold(t *testing.T) {
	for name, history := range map[string][]operation{
		"one after the other":                {read("", 1, 2), write("a", 3, 4, done), read("a", 5, 6), write("b", 7, 8, done), read("b", 9, 10)},
		"a read beside a write sees either":  {write("a", 1, 10, done), read("", 2, 3), read("a", 4, 5)},
		"an unknown write may never happen":  {write("a", 1, 2, done), write("b", 3, 4, unknown), read("a", 5, 6)},
		"an unknown write may happen late":   {write("a", 1, 2, done), write("b", 3, 4, unknown), read("a", 5, 6), read("b", 7, 8)},
		"a failed write does nothing":        {write("a", 1, 2, done), write("b", 3, 4, failed), read("a", 5, 6)},
		"a read without an answer says none": {write("a", 1, 2, done), {Key: "r", Call: 3, Return: 4, Outcome: unknown}},
	} {
		if found := checkRegisters(history); len(found) > 0 {
			t.Errorf("%s: %s", name, found)
		}
	}
}

func TestRegistersThatDoNot(t *testing.T) {
	for name, history := range map[string][]operation{
		"a stale read":           {write("a", 1, 2, done), write("b", 3, 4, done), read("a", 5, 6)},
		"a lost write":           {write("a", 1, 2, done), read("", 3, 4)},
		"a failed write is seen": {write("a", 1, 2, failed), read("a", 3, 4)},
		"two reads go back":      {write("a", 1, 20, done), read("a", 2, 3), read("", 4, 5)},
		"a write happens twice":  {write("a", 1, 2, unknown), read("a", 3, 4), write("b", 5, 6, done), read("b", 7, 8), read("a", 9, 10)},
	} {
		found := checkRegisters(history)
		if len(found) != 1 || !strings.Contains(found[0], "first at the read") {
			t.Errorf("%s: got %q, want one finding that points at the read", name, found)
		}
	}
}

// A restore takes all registers back to what they were when the state was saved,
// at one moment, and nothing else.
func TestRegistersAndARestore(t *testing.T) {
	of := func(what act, call, back int64) operation { return operation{Act: what, Call: call, Return: back} }
	for name, history := range map[string][]operation{
		"a write after the save is gone":         {write("a", 1, 2, done), of(save, 3, 4), write("b", 5, 6, done), of(bring, 7, 8), read("a", 9, 10)},
		"a write beside the save is in it":       {write("a", 1, 6, done), of(save, 2, 5), of(bring, 7, 8), read("a", 9, 10)},
		"a write beside the restore is after":    {of(save, 1, 2), of(bring, 3, 8), write("a", 4, 9, done), read("a", 10, 11)},
		"a restore without an answer may not be": {of(save, 1, 2), write("a", 3, 4, done), {Act: bring, Call: 5, Return: 6, Outcome: unknown}, read("a", 7, 8), read("", 9, 10)},
	} {
		if found := checkRegisters(history); len(found) > 0 {
			t.Errorf("%s: %s", name, found)
		}
	}
	for name, history := range map[string][]operation{
		"a write before the save is gone":     {write("a", 1, 2, done), of(save, 3, 4), of(bring, 7, 8), read("", 9, 10)},
		"a write after the restore is gone":   {of(save, 1, 2), of(bring, 3, 4), write("a", 5, 6, done), read("", 7, 8)},
		"a write after the save is there":     {of(save, 1, 2), write("a", 3, 4, done), of(bring, 5, 6), read("a", 7, 8)},
		"the restore was refused and happens": {of(save, 1, 2), write("a", 3, 4, done), {Act: bring, Call: 5, Return: 6, Outcome: failed}, read("", 7, 8)},
	} {
		if found := checkRegisters(history); len(found) != 1 {
			t.Errorf("%s: got %q, want one finding", name, found)
		}
	}
}

// What was acknowledged between the save and the restore may be missing; what
// was before or after may not.
func TestSubmissionsAndARestore(t *testing.T) {
	restores := []restored{{Saved: 10, Done: 20}}
	for asked, gone := range map[int64]bool{5: false, 9: true, 15: true, 19: true, 21: false} {
		s := &submission{Key: "k", Name: "n", ID: "1", Asked: asked, Acked: asked + 2}
		if found := checkSubmissions([]*submission{s}, nil, restores); (len(found["I4"]) == 0) != gone {
			t.Errorf("asked at %d: %v", asked, found)
		}
	}
}

func TestReportsThatCount(t *testing.T) {
	of := func(index uint64, id string, attempt uint64) structs.Event {
		return structs.Event{Index: index, ID: id, JobID: "j", Attempt: attempt}
	}
	history := func(events ...structs.Event) map[position]structs.Event {
		all := map[position]structs.Event{}
		for _, e := range events {
			all[position{Index: e.Index}] = e
		}
		return all
	}
	good := history(of(1, eventStarting, 1), of(2, "event.alloc.running", 1), of(3, "event.alloc.lost", 1), of(4, eventStarting, 2), of(5, "event.alloc.lost", 1), of(6, "event.alloc.complete", 2))
	if found := checkReports(good, nil); len(found) > 0 {
		t.Error(found)
	}
	for _, late := range eventsCounted {
		if found := checkReports(history(of(1, eventStarting, 1), of(2, eventStarting, 2), of(3, late, 1)), nil); len(found) != 1 {
			t.Errorf("%s of attempt 1 after attempt 2: %v", late, found)
		}
		given := []restored{{From: 1, To: 2}}
		if found := checkReports(history(of(1, eventStarting, 1), of(2, eventStarting, 2), of(3, late, 1)), given); len(found) > 0 {
			t.Errorf("%s of attempt 1, attempt 2 was given up: %v", late, found)
		}
	}
}

func TestGangsThatBegin(t *testing.T) {
	told := map[position]structs.Event{
		{Index: 1}: {ID: eventStarting, JobID: "j", Attempt: 1},
		{Index: 2}: {ID: eventReleased, JobID: "j", Attempt: 1},
		{Index: 3}: {ID: eventStarting, JobID: "j", Attempt: 2},
		{Index: 4}: {ID: eventStarting, JobID: "alone", Attempt: 1},
	}
	submissions := []*submission{{ID: "j", Nodes: 2}, {ID: "alone", Nodes: 1}}
	far := int64(time.Hour)
	for b, want := range map[begun]int{
		{"j", "1", far}: 0, {"alone", "1", far}: 0, {"j", "2", far}: 1, {"j", "3", far}: 1, {"alone", "2", far}: 1, {"j", "3", 1}: 0,
	} {
		if found := checkBegun([]begun{b}, submissions, told, []restored{{Saved: 1, Done: 2}}); len(found) != want {
			t.Errorf("%v: %v", b, found)
		}
	}
}

func TestSubmissions(t *testing.T) {
	job := func(id, name string, state structs.JobState) api.JobSummary {
		return api.JobSummary{ID: id, Name: name, JobStatus: api.JobStatus{State: state}}
	}
	submissions := []*submission{{Key: "k1", Name: "one", ID: "1"}, {Key: "k2", Name: "two", ID: "2", Lasting: true}, {Key: "k3", Name: "three"}}
	good := []api.JobSummary{job("1", "one", structs.JobSucceeded), job("2", "two", structs.JobStopped)}
	if found := checkSubmissions(submissions, good, nil); len(found) > 0 {
		t.Errorf("a good end: %v", found)
	}
	for want, jobs := range map[string][]api.JobSummary{
		"I4":  {good[1]},
		"I5":  {good[0], good[1], job("3", "three", structs.JobSucceeded), job("4", "three", structs.JobSucceeded)},
		"I10": {job("1", "one", structs.JobFailed), good[1]},
		"I11": {job("1", "one", structs.JobQueued), good[1]},
	} {
		if found := checkSubmissions(submissions, jobs, nil); len(found[want]) != 1 {
			t.Errorf("want one finding of %s, got %v", want, found)
		}
	}
}

func TestWatchers(t *testing.T) {
	all := map[position]structs.Event{}
	var every []seen
	for _, at := range []position{{1, 0}, {1, 1}, {2, 0}, {5, 0}, {5, 1}, {5, 2}} {
		all[at] = structs.Event{Index: at.Index, Seq: at.Seq, ID: "event.job.running"}
		every = append(every, seen{Index: at.Index, Seq: at.Seq, At: time.Now()})
	}
	without := func(drop ...int) []seen {
		var left []seen
		for i, e := range every {
			if len(drop) == 0 || i != drop[0] {
				left = append(left, e)
			}
		}
		return left
	}
	if found := checkWatcher(&watched{Events: every}, all, nil); len(found) > 0 {
		t.Error(found)
	}
	if found := checkWatcher(&watched{Events: every[2:]}, all, nil); len(found) > 0 {
		t.Errorf("one who came later: %v", found)
	}
	for i := 1; i < len(every)-1; i++ {
		if found := checkWatcher(&watched{Events: without(i)}, all, nil); len(found) != 1 {
			t.Errorf("without event %d: %v", i, found)
		}
	}
	if found := checkWatcher(&watched{Events: append(without(), every[4])}, all, nil); len(found) != 1 {
		t.Errorf("an event twice: %v", found)
	}
	gap := append(append([]seen(nil), every[:2]...), every[3:]...)
	if found := checkWatcher(&watched{Events: gap}, all, []restored{{From: 1, To: 2}}); len(found) > 0 {
		t.Errorf("an event of a state that was given up: %v", found)
	}
	if found := checkWatcher(&watched{Events: gap}, all, []restored{{From: 2, To: 4}}); len(found) != 1 {
		t.Errorf("an event from before the restore: %v", found)
	}
	if found := checkWatcher(&watched{}, all, nil); len(found) != 1 {
		t.Errorf("no event: %v", found)
	}
}

func TestAttempts(t *testing.T) {
	starting := func(index uint64, attempt uint64) (position, structs.Event) {
		return position{Index: index}, structs.Event{Index: index, ID: eventStarting, JobID: "j", Attempt: attempt}
	}
	for _, c := range []struct {
		attempts []uint64
		want     int
	}{{[]uint64{1, 2, 3}, 0}, {[]uint64{1, 2, 2}, 1}, {[]uint64{1, 3, 2}, 1}} {
		all := map[position]structs.Event{}
		for i, attempt := range c.attempts {
			at, event := starting(uint64(i+1), attempt)
			all[at] = event
		}
		if found := checkAttempts(all); len(found) != c.want {
			t.Errorf("attempts %v: %v", c.attempts, found)
		}
	}
}

func TestNodesAndTasks(t *testing.T) {
	allocation := func(id, device string, port int, cpu float64) structs.Allocation {
		a := structs.Allocation{ID: id, Status: structs.AllocRunning, Devices: []string{device}, Ports: map[string]int{"p": port}}
		a.Spec.CPU = cpu
		return a
	}
	detail := func(allocations ...structs.Allocation) *api.NodeDetail {
		d := &api.NodeDetail{Allocations: allocations}
		d.Name, d.Capacity.CPU = "c1", 2
		return d
	}
	if found := checkNode(detail(allocation("a", "0", 1, 1), allocation("b", "1", 2, 1))); len(found) > 0 {
		t.Error(found)
	}
	for name, bad := range map[string]*api.NodeDetail{
		"device": detail(allocation("a", "0", 1, 1), allocation("b", "0", 2, 1)),
		"port":   detail(allocation("a", "0", 1, 1), allocation("b", "1", 1, 1)),
		"cores":  detail(allocation("a", "0", 1, 1), allocation("b", "1", 2, 1.5)),
	} {
		if found := checkNode(bad); len(found) != 1 {
			t.Errorf("%s: %v", name, found)
		}
	}
	twice := []task{{JobID: "j", Rank: "0", Attempt: "1"}, {JobID: "j", Rank: "0", Attempt: "2"}}
	if found := checkTasks(twice, map[string]bool{"j": true}); len(found) != 1 {
		t.Error(found)
	}
	if found := checkTasks(twice, nil); len(found) != 0 {
		t.Error(found)
	}
}

// A seed names the same attacks everywhere, and every fault comes before any
// comes twice.
func TestPlan(t *testing.T) {
	kinds := faults()
	steps, again := plan(7, time.Hour, kinds), plan(7, time.Hour, kinds)
	if len(steps) < 2*len(kinds) {
		t.Fatalf("an hour holds %d steps", len(steps))
	}
	for i := range steps {
		if steps[i] != again[i] {
			t.Fatalf("step %d is %v and %v", i, steps[i], again[i])
		}
	}
	count := map[string]int{}
	for _, s := range steps[:len(kinds)] {
		count[s.Fault]++
	}
	if len(count) != len(kinds) {
		t.Errorf("the first round has %d of %d faults", len(count), len(kinds))
	}
	if other := plan(8, time.Hour, kinds); other[0] == steps[0] && other[1] == steps[1] {
		t.Error("two seeds begin alike")
	}
}

// Edits must fit the sources of today: a plant that no longer fits would be
// found out only in the long suite.
func TestEditsFit(t *testing.T) {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range append(plants(), plant{name: "none"}) {
		if _, err := overlay(strings.TrimSpace(string(root)), t.TempDir(), append(thresholds(), p.edits...)); err != nil {
			t.Errorf("plant %s: %v", p.name, err)
		}
	}
}

func TestCheckVoters(t *testing.T) {
	three, four, other := []string{"a", "b", "c"}, []string{"a", "b", "c", "d"}, []string{"b", "c", "d"}
	for _, c := range []struct {
		name   string
		voters map[uint64][]string
		acts   []uint64
		unsure int
		want   int
	}{
		{"nothing changes", map[uint64][]string{1: three}, nil, 0, 0},
		{"one by one", map[uint64][]string{1: three, 5: four, 9: other}, []uint64{3, 5, 9}, 0, 0},
		{"between two looks", map[uint64][]string{1: three, 9: other}, []uint64{3, 5, 9}, 0, 0},
		{"two at once", map[uint64][]string{1: three, 9: other}, []uint64{9}, 0, 1},
		{"by nobody", map[uint64][]string{1: three, 5: four}, []uint64{1}, 0, 1},
		{"perhaps", map[uint64][]string{1: three, 5: four}, nil, 1, 0},
	} {
		if found := checkVoters(c.voters, c.acts, c.unsure); len(found) != c.want {
			t.Errorf("%s: %v", c.name, found)
		}
	}
}

package load

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"nomadlike/nomadlike/structs"
)

// tallied is a state of which jobs are known, too.
type tallied struct {
	fake
	jobs map[string]*structs.Job
}

func (f *tallied) JobOf(id string) *structs.Job { return f.jobs[id] }

func (f *tallied) ran(job, user string, status structs.AllocStatus, from, to time.Duration, held structs.QuotaUsage) *structs.Allocation {
	if f.jobs == nil {
		f.jobs = make(map[string]*structs.Job)
	}
	f.jobs[job] = &structs.Job{ID: job, Name: job, Project: "vision", User: user}
	alloc := &structs.Allocation{ID: fmt.Sprint(job, len(f.allocs)), JobID: job, Status: status, PlacedAt: before(from), QuotaUsage: held}
	if status.Terminal() {
		alloc.FinishedAt = before(to)
	}
	f.allocs = append(f.allocs, alloc)
	return alloc
}

func (t *Tally) text() string {
	var b strings.Builder
	for _, day := range t.Days {
		fmt.Fprintf(&b, "%s cores %.2f", day.Start.Time().UTC().Format("02 15:04"), day.Cores)
		for _, key := range slices.Sorted(maps.Keys(day.Cards)) {
			kind, model := CardKind(key)
			fmt.Fprintf(&b, ", %q %q %.2f", kind, model, day.Cards[key])
		}
		b.WriteByte('\n')
	}
	for _, job := range t.Jobs {
		fmt.Fprintf(&b, "%s of %s/%s: cards %.2f, cores %.2f, forgotten %t\n", job.Name, job.Project, job.User, job.Cards, job.Cores, job.Forgotten)
	}
	return b.String()
}

// Now is Monday, 8:07. What ran over midnight counts on both days, what runs until
// now, what was before the first day not at all.
func TestTallied(t *testing.T) {
	eight := structs.QuotaUsage{structs.DeviceKey("nvidia/gpu", "NVIDIA A800"): 8, structs.QuotaCPU: 16_000}
	f := &tallied{}
	f.ran("night", "li", structs.AllocComplete, 10*time.Hour+7*time.Minute, 6*time.Hour+7*time.Minute, eight) // 22:00 to 02:00
	f.ran("now", "li", structs.AllocRunning, 30*time.Minute, 0, structs.QuotaUsage{structs.DeviceKey("huawei/npu", "910B"): 2})
	f.ran("old", "li", structs.AllocComplete, 60*time.Hour, 50*time.Hour, eight)
	f.ran("other", "mei", structs.AllocComplete, 2*time.Hour, time.Hour, eight)
	f.runs = []*structs.PastRun{
		{JobID: "night", Project: "vision", User: "li", Name: "night", Devices: 8, Runtime: structs.Duration(4 * time.Hour), EndedAt: before(6*time.Hour + 7*time.Minute)}, // counted above
		{JobID: "gone", Project: "vision", User: "li", Name: "gone", Devices: 4, Runtime: structs.Duration(time.Hour), EndedAt: before(3 * time.Hour)},
		{JobID: "strange", Project: "speech", User: "li", Name: "strange", Devices: 4, Runtime: structs.Duration(time.Hour), EndedAt: before(3 * time.Hour)},
	}
	starts := []structs.UnixNano{before(32*time.Hour + 7*time.Minute), before(8*time.Hour + 7*time.Minute)}
	ofLi := Tallied(f, starts, now, func(project, user string) bool { return project == "vision" && user == "li" })
	want := `01 00:00 cores 32.00, "nvidia/gpu" "NVIDIA A800" 16.00
02 00:00 cores 32.00, "" "" 4.00, "huawei/npu" "910B" 1.00, "nvidia/gpu" "NVIDIA A800" 16.00
night of vision/li: cards 32.00, cores 64.00, forgotten false
gone of vision/li: cards 4.00, cores 0.00, forgotten true
now of vision/li: cards 1.00, cores 0.00, forgotten false
`
	if got := ofLi.text(); got != want {
		t.Errorf("li in vision:\n%s\nwant\n%s", got, want)
	}
	if got := Tallied(f, starts, now, func(string, string) bool { return false }); len(got.Jobs) > 0 || len(got.Days[0].Cards)+len(got.Days[1].Cards) > 0 {
		t.Errorf("nobody's: %s", got.text())
	}
}

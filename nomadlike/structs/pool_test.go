package structs_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"nomadlike/internal/golden"
	"nomadlike/internal/messages"
	. "nomadlike/nomadlike/structs"
)

func goodPool() *Pool {
	return &Pool{
		Name: "a800", Description: "eight cards each", Nodes: []string{"gpu-01", "gpu-02"},
		Constraints: map[string]string{"arch": "amd64|arm64"}, Dedicated: true, RDMA: true, Order: OrderFair,
		HalfLife: Duration(24 * time.Hour), AgeWeight: 2,
		SKU:      &SKU{CPU: 8, Memory: 64 * GiB, Devices: []DeviceRequest{{Kind: "nvidia/gpu", Count: 1, Model: "A800"}}},
		Defaults: PoolDefaults{TimeLimit: Duration(time.Hour), Priority: PriorityUrgent},
		Ceilings: PoolCeilings{TimeLimit: Duration(48 * time.Hour), Nodes: 4, Devices: 16, MaxResumes: 5, Grace: Duration(10 * time.Minute)},
	}
}

func goodProject() *Project {
	four := 4
	return &Project{
		Name: "vision", Members: []string{"li", "王"}, Weight: 2, UrgentLimit: &four,
		Quotas: []Quota{{Kind: "nvidia/gpu", Guaranteed: 8}, {Kind: "nvidia/gpu", Model: "A800", Maximum: &four}, {Kind: QuotaCPU, Guaranteed: 100}},
	}
}

// TestPoolsAndProjectsAreChecked spoils one thing at a time and shows what is
// said about it, in both languages.
func TestPoolsAndProjectsAreChecked(t *testing.T) {
	if problems := slices.Concat(goodPool().Validate(), goodProject().Validate(), (&Pool{Name: "p"}).Validate(), (&Project{Name: "p"}).Validate()); len(problems) != 0 {
		t.Fatalf("good records: %v", problems)
	}
	negative, few := -1, 2
	pools := map[string]func(*Pool){
		"name":                 func(p *Pool) { p.Name = "A 800" },
		"description":          func(p *Pool) { p.Description = "\xff" },
		"node":                 func(p *Pool) { p.Nodes = []string{"-x", "gpu-01", "gpu-01"} },
		"too many nodes":       func(p *Pool) { p.Nodes = make([]string, PoolNodesMax+1) },
		"constraint":           func(p *Pool) { p.Constraints = map[string]string{"arch": "a||b", "": "x", "os": ""} },
		"sku":                  func(p *Pool) { p.SKU = &SKU{CPU: math.Inf(1), Memory: 1} },
		"sku device":           func(p *Pool) { p.SKU.Devices = []DeviceRequest{{Kind: "gpu", Count: DevicesAll, IDs: []string{"0"}}} },
		"sku device twice":     func(p *Pool) { p.SKU.Devices = append(p.SKU.Devices, p.SKU.Devices[0]) },
		"order":                func(p *Pool) { p.Order = "fare" },
		"half life of no use":  func(p *Pool) { p.Order = "" },
		"half life":            func(p *Pool) { p.HalfLife = 1 },
		"age weight":           func(p *Pool) { p.AgeWeight = math.NaN() },
		"defaults":             func(p *Pool) { p.Defaults = PoolDefaults{TimeLimit: -1, Priority: PriorityCritical} },
		"default over ceiling": func(p *Pool) { p.Defaults.TimeLimit = Duration(49 * time.Hour) },
		"hold over ceiling":    func(p *Pool) { p.Ceilings.Hold, p.Defaults.Hold = 1, 2 },
		"ceilings":             func(p *Pool) { p.Ceilings = PoolCeilings{-1, -1, -1, -1, -1, -1, false} },
	}
	projects := map[string]func(*Project){
		"name":          func(p *Project) { p.Name = "" },
		"members":       func(p *Project) { p.Members = []string{"", "li", "li", "a\x00"} },
		"weight":        func(p *Project) { p.Weight = -1 },
		"quota kind":    func(p *Project) { p.Quotas[0].Kind = "gpus" },
		"quota twice":   func(p *Project) { p.Quotas[1].Model = "" },
		"quota empty":   func(p *Project) { p.Quotas[0].Guaranteed = 0 },
		"quota maximum": func(p *Project) { p.Quotas[0].Maximum, p.Quotas[1].Maximum = &few, &negative },
		"cores' model":  func(p *Project) { p.Quotas[2].Model = "EPYC" },
		"urgent":        func(p *Project) { p.UrgentLimit = &negative },
	}
	for _, language := range []messages.Language{messages.English, messages.Chinese} {
		var b strings.Builder
		for _, name := range slices.Sorted(maps.Keys(pools)) {
			p := goodPool()
			pools[name](p)
			writeProblems(t, &b, language, "pool: "+name, p.Validate())
		}
		for _, name := range slices.Sorted(maps.Keys(projects)) {
			p := goodProject()
			projects[name](p)
			writeProblems(t, &b, language, "project: "+name, p.Validate())
		}
		golden.Assert(t, "testdata/pool."+string(language)+".txt", b.String())
	}
}

func writeProblems(t *testing.T, b *strings.Builder, language messages.Language, title string, problems []Problem) {
	t.Helper()
	fmt.Fprintf(b, "%s\n", title)
	if len(problems) == 0 {
		t.Errorf("%s: nothing was found wrong", title)
	}
	for _, p := range problems {
		writeProblem(b, language, p)
		for _, id := range []string{p.ID, p.HintID} {
			if id != "" && (!messages.Has(language, id) || strings.Contains(messages.Text(language, id, p.Params), "{")) {
				t.Errorf("%s: message %s is missing or has a hole", title, id)
			}
		}
	}
}

func poolJob() *Job {
	j := &Job{
		Name: "j", Nodes: 2, Placement: Placement{Pool: "a800"}, TimeLimit: Duration(time.Hour), Task: Task{Command: "true"},
		Resources: []Resources{{SKU: 4}}, Checkpoint: &Checkpoint{MaxResumes: 5, Grace: Duration(time.Minute)},
	}
	j.SetDefaults()
	return j
}

// TestAdmit shows what a pool makes of jobs, and what it has against others.
func TestAdmit(t *testing.T) {
	cases := map[string]func(*Pool, *Job){
		"as it should be":    func(*Pool, *Job) {},
		"devices given, too": func(_ *Pool, j *Job) { j.Resources[0].Devices = []DeviceRequest{{Kind: "nvidia/gpu", Count: 4}} },
		"two models": func(_ *Pool, j *Job) {
			j.Resources[0].Devices = []DeviceRequest{{Kind: "nvidia/gpu", Count: 1, Model: "A100"}, {Kind: "nvidia/gpu", Count: 3, Models: []string{"H20"}}}
		},
		"less memory":   func(_ *Pool, j *Job) { j.Resources[0].Memory = GiB },
		"more memory":   func(_ *Pool, j *Job) { j.Resources[0].Memory = 257 * GiB },
		"more cores":    func(_ *Pool, j *Job) { j.Resources[0].CPU = 32.001 },
		"shared memory": func(_ *Pool, j *Job) { j.Resources[0].SharedMemory = 257 * GiB },
		"other count":   func(_ *Pool, j *Job) { j.Resources[0].Devices = []DeviceRequest{{Kind: "nvidia/gpu", Count: 3}} },
		"all devices": func(_ *Pool, j *Job) {
			j.Resources[0].Devices = []DeviceRequest{{Kind: "nvidia/gpu", Count: DevicesAll}}
		},
		"other kind":     func(_ *Pool, j *Job) { j.Resources[0].Devices = []DeviceRequest{{Kind: "huawei/npu", Count: 4}} },
		"no SKU":         func(p *Pool, _ *Job) { p.SKU = nil },
		"too many units": func(_ *Pool, j *Job) { j.Resources[0].SKU = 1024 },
		"RDMA":           func(_ *Pool, j *Job) { j.Resources[0].RDMA = true },
		"no RDMA":        func(p *Pool, j *Job) { p.RDMA, p.NoRDMA, j.Resources[0].RDMA = false, true, true },
		"no limit":       func(_ *Pool, j *Job) { j.TimeLimit = 0 },
		"long limit":     func(_ *Pool, j *Job) { j.TimeLimit = Duration(49 * time.Hour) },
		"many nodes":     func(_ *Pool, j *Job) { j.Nodes = 5 },
		"many devices":   func(_ *Pool, j *Job) { j.Nodes = 4; j.Resources = append(j.Resources, Resources{SKU: 5}) },
		"many resumes":   func(_ *Pool, j *Job) { j.Checkpoint.MaxResumes = 6; j.Checkpoint.Grace = Duration(11 * time.Minute) },
		"no checkpoint":  func(p *Pool, _ *Job) { p.Ceilings.NoCheckpoint = true },
		"set by ada": func(p *Pool, j *Job) {
			p.CeilingsBy, p.Ceilings.NoCheckpoint, j.TimeLimit = "ada", true, 0
			j.Resources[0].Devices = []DeviceRequest{{Kind: "nvidia/gpu", Count: DevicesAll}}
		},
		"no checkpoint on named nodes": func(p *Pool, j *Job) {
			p.Ceilings.NoCheckpoint, j.Placement = true, Placement{Nodes: []string{"a", "b"}}
		},
		"no checkpoint, none asked for": func(p *Pool, j *Job) { p.Ceilings.NoCheckpoint, j.Checkpoint = true, nil },
		"without units": func(_ *Pool, j *Job) {
			j.Resources[0] = Resources{CPU: 1, Memory: GiB, Devices: []DeviceRequest{{Kind: "nvidia/gpu", Count: 8}}}
		},
		"fewer at the end": func(_ *Pool, j *Job) {
			j.Resources[0] = Resources{CPU: 1, Memory: GiB, LastDevices: 1, Devices: []DeviceRequest{{Kind: "nvidia/gpu", Count: 8}}}
			j.Nodes = 3
		},
		"floors": func(p *Pool, j *Job) {
			p.Floors = PoolFloors{SKU: 5, CPU: 40, Memory: 200 * GiB, Devices: 3}
			j.Resources[0].SKU = 2
		},
		"floors of units, without units": func(p *Pool, j *Job) {
			p.Floors = PoolFloors{SKU: 5}
			j.Resources[0] = Resources{CPU: 1, Memory: GiB, Devices: []DeviceRequest{{Kind: "nvidia/gpu", Count: 4}}}
		},
		"floors, one node": func(p *Pool, j *Job) {
			p.Floors, j.Nodes = PoolFloors{SKU: 5}, 1
			j.Resources[0].SKU = 2
		},
		"named nodes, no bound": func(_ *Pool, j *Job) { j.Placement = Placement{Nodes: []string{"a", "b"}}; j.TimeLimit = 0 },
	}
	for _, language := range []messages.Language{messages.English, messages.Chinese} {
		var b strings.Builder
		for _, name := range slices.Sorted(maps.Keys(cases)) {
			p, j := goodPool(), poolJob()
			cases[name](p, j)
			before := j.Copy()
			admitted, problems := p.Admit(j)
			if diff := cmp.Diff(before, j); diff != "" {
				t.Errorf("%s: the job was changed:\n%s", name, diff)
			}
			if len(problems) > 0 {
				writeProblems(t, &b, language, name, problems)
				continue
			}
			fmt.Fprintf(&b, "%s\n", name)
			for _, r := range admitted.Resources {
				fmt.Fprintf(&b, "  cpu %v, memory %s, devices %+v\n", r.CPU, FormatSize(r.Memory), r.Devices)
			}
			if again, problems := p.Admit(admitted); len(problems) != 0 || !cmp.Equal(again, admitted) {
				t.Errorf("%s: admitted twice: %v", name, problems)
			}
		}
		golden.Assert(t, "testdata/admit."+string(language)+".txt", b.String())
	}
}

func TestAdmitWithoutRecord(t *testing.T) {
	var none *Pool
	j := poolJob()
	if _, problems := none.Admit(j); len(problems) != 1 || problems[0].ID != "pool.no_sku" || problems[0].Params["pool"] != PoolDefault {
		t.Errorf("SKU without a record: %v", problems)
	}
	j.Resources, j.Placement.Pool = []Resources{{CPU: 1, Memory: GiB, RDMA: true}}, ""
	if _, problems := none.Admit(j); len(problems) != 0 {
		t.Errorf("a job without a pool may find RDMA in one: %v", problems)
	}
	if chosen := none.SetDefaults(j); chosen != nil {
		t.Errorf("defaults without a record: %v", chosen)
	}
}

func TestPoolDefaults(t *testing.T) {
	j := &Job{}
	if chosen := goodPool().SetDefaults(j); len(chosen) != 2 || j.Priority != PriorityUrgent || j.TimeLimit != Duration(time.Hour) {
		t.Errorf("chosen %v for %+v", chosen, j)
	}
	if chosen := goodPool().SetDefaults(j); len(chosen) != 0 {
		t.Errorf("chosen again: %v", chosen)
	}
}

// TestResolveIsWithinTheUnits: whatever a spec sets itself, what comes out is at
// most its multiples, and asks for all their devices.
func TestResolveIsWithinTheUnits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &Pool{Name: "p", SKU: &SKU{CPU: float64(rapid.IntRange(1, 4000).Draw(t, "cpu")) / 100, Memory: rapid.Int64Range(MemoryMin, MemoryMax).Draw(t, "memory")}}
		for _, kind := range []string{"nvidia/gpu", "huawei/npu"} {
			if rapid.Bool().Draw(t, kind) {
				p.SKU.Devices = append(p.SKU.Devices, DeviceRequest{Kind: kind, Count: rapid.IntRange(1, DeviceCountMax).Draw(t, "count")})
			}
		}
		spec := Resources{
			SKU: rapid.IntRange(1, SKUMax).Draw(t, "sku"), CPU: float64(rapid.IntRange(0, 100).Draw(t, "own cpu")) / 10,
			Memory: rapid.Int64Range(0, MemoryMax).Draw(t, "own memory"),
		}
		for range rapid.IntRange(0, 2).Draw(t, "requests") {
			spec.Devices = append(spec.Devices, DeviceRequest{
				Kind:  rapid.SampledFrom([]string{"nvidia/gpu", "huawei/npu"}).Draw(t, "own kind"),
				Count: rapid.SampledFrom([]int{1, 2, spec.SKU, DevicesAll}).Draw(t, "own count"),
			})
		}
		resolved, problems := p.Resolve(spec, "r")
		if len(problems) > 0 {
			return
		}
		n := int64(spec.SKU)
		if MilliCPU(resolved.CPU) > n*MilliCPU(p.SKU.CPU) || resolved.Memory > n*p.SKU.Memory || resolved.CPU <= 0 || resolved.Memory <= 0 {
			t.Fatalf("resolved %+v from %+v of %+v", resolved, spec, p.SKU)
		}
		want := 0
		for _, d := range p.SKU.Devices {
			want += d.Count * spec.SKU
		}
		if resolved.DeviceCount() != want {
			t.Fatalf("%d devices, want %d", resolved.DeviceCount(), want)
		}
	})
}

func TestPoolOf(t *testing.T) {
	pools := []*Pool{
		{Name: "z", Nodes: []string{"n1"}},
		{Name: "b", Constraints: map[string]string{"arch": "arm64|riscv", "os": "euler"}},
		{Name: "c", Nodes: []string{"n1", "n2"}},
		{Name: "a", Constraints: map[string]string{"os": "euler"}},
		{Name: "empty"},
	}
	for _, c := range []struct {
		name string
		node *Node
		want string
	}{
		{"listed twice: the first by name", &Node{Name: "n1"}, "c"},
		{"listing beats constraints", &Node{Name: "n2", Attributes: map[string]string{"os": "euler"}}, "c"},
		{"all constraints of two: the first by name", &Node{Name: "n3", Attributes: map[string]string{"os": "euler", "arch": "riscv"}, OwnPool: "own"}, "a"},
		{"its own", &Node{Name: "n4", Attributes: map[string]string{"arch": "arm64"}, OwnPool: "own"}, "own"},
		{"none", &Node{Name: "n5"}, PoolDefault},
	} {
		for range 2 {
			if got := PoolOf(c.node, pools); got != c.want {
				t.Errorf("%s: %s, want %s", c.name, got, c.want)
			}
			slices.Reverse(pools)
		}
	}
}

func TestVersionConstraint(t *testing.T) {
	for _, c := range []struct {
		constraint, version string
		holds               bool
	}{
		{"", "anything", true},
		{"", "", true},
		{">= 535", "535.104.05", true},
		{">= 535", "535", true},
		{">= 535.104", "535", false},
		{">= 535.104", "535.104.05", true},
		{">= 535", "470.256", false},
		{"535", "535.104.05", true},
		{"= 535.54", "535.104", false},
		{"!= 535", "535.104.05", false},
		{"!=535.54.03", "535.104.05", true},
		{"> 535", "535.104.05", false},
		{"> 535", "536", true},
		{"<= 535", "535.999", true},
		{"< 560", "560.28", false},
		{">= 535, < 560", "550.90.07", true},
		{">= 535, < 560", "560.90.07", false},
		{">= 535", "", false},
		{">= 9", "10", true},
		{">= 00535", "535", true},
		{">= 535", "00535", true},
		{">= 99999999999999999999999", "100000000000000000000000", true},
		{">= 23.0.1", "23.0.rc3", false},
		{">= 23.0", "23.0.rc3", true},
		{"= 1.72", "1.72.T2.100.B020", true},
		{"= 25.0", "25.0rc1", true},
	} {
		constraint, ok := ParseVersionConstraint(c.constraint)
		if !ok || constraint.Allows(c.version) != c.holds {
			t.Errorf("%q holds for %q: %v (readable %v), want %v", c.constraint, c.version, constraint.Allows(c.version), ok, c.holds)
		}
	}
	for _, text := range []string{" ", ">=", "a", "535.", ".535", "1..2", "535,", ">= > 5", "5 6"} {
		if constraint, ok := ParseVersionConstraint(text); ok {
			t.Errorf("%q was read as %v", text, constraint)
		}
	}
}

// FuzzVersionConstraint: whatever can be read orders versions without a
// contradiction.
func FuzzVersionConstraint(f *testing.F) {
	f.Add(">= 535, < 560", "535.104.05")
	f.Add("1.2", "1.rc3")
	f.Fuzz(func(t *testing.T, text, version string) {
		constraint, ok := ParseVersionConstraint(text)
		if !ok {
			return
		}
		for _, term := range constraint {
			holds := func(operator string) bool { return VersionConstraint{{operator, term.Version}}.Allows(version) }
			if version == "" {
				continue
			}
			if holds(">=") == holds("<") || holds("<=") == holds(">") || holds("=") == holds("!=") || holds("=") != (holds(">=") && holds("<=")) {
				t.Fatalf("%q and %q contradict", term, version)
			}
		}
	})
}

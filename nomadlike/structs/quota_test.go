package structs

import (
	"maps"
	"testing"

	"pgregory.net/rapid"
)

func bounded(n int) *int { return &n }

func TestQuotaProblem(t *testing.T) {
	a800, a100 := DeviceKey("nvidia/gpu", "NVIDIA A800-SXM4-80GB"), DeviceKey("nvidia/gpu", "NVIDIA A100")
	project := &Project{Name: "vision", Quotas: []Quota{
		{Kind: "nvidia/gpu", Guaranteed: 4, Maximum: bounded(16)},
		{Kind: "nvidia/gpu", Model: "A800", Maximum: bounded(8)},
		{Kind: QuotaCPU, Maximum: bounded(10)},
		{Kind: "huawei/npu", Guaranteed: 8},
	}}
	usage := &ProjectUsage{QuotaUsage: QuotaUsage{a800: 6, a100: 6, QuotaCPU: 9_500}}
	for _, c := range []struct {
		name    string
		project *Project
		usage   *ProjectUsage
		more    QuotaUsage
		kind    string // in the reason; "": none
	}{
		{"nothing asked", project, usage, QuotaUsage{}, ""},
		{"within all", project, usage, QuotaUsage{a800: 2, a100: 2, QuotaCPU: 500}, ""},
		{"over the model's", project, usage, QuotaUsage{a800: 3}, "nvidia/gpu A800"},
		{"over the kind's", project, usage, QuotaUsage{a100: 5}, "nvidia/gpu"},
		{"both models together over the kind's", project, usage, QuotaUsage{a100: 3, a800: 2}, "nvidia/gpu"},
		{"over the cores", project, usage, QuotaUsage{QuotaCPU: 501}, "cpu"},
		{"no bound", project, usage, QuotaUsage{DeviceKey("huawei/npu", "910B"): 1000}, ""},
		{"a kind without quota", project, usage, QuotaUsage{DeviceKey("x/y", "z"): 1000}, ""},
		{"a kind whose name begins alike", project, usage, QuotaUsage{DeviceKey("nvidia/gpu-shared", "A30"): 1000}, ""},
		{"no record", nil, usage, QuotaUsage{a800: 1000}, ""},
		{"nothing held", project, nil, QuotaUsage{a800: 8}, ""},
		{"nothing held, too much", project, nil, QuotaUsage{a800: 9}, "nvidia/gpu A800"},
	} {
		reason := QuotaProblem(c.project, c.usage, c.more)
		got := ""
		if reason != nil {
			got = reason.Params["kind"]
		}
		if got != c.kind || reason != nil && reason.ID != "scheduler.quota" {
			t.Errorf("%s: %+v, want %q", c.name, reason, c.kind)
		}
	}
	if reason := QuotaProblem(project, usage, QuotaUsage{QuotaCPU: 501}); reason.Params["held"] != "9.5" || reason.Params["need"] != "0.501" || reason.Params["maximum"] != "10" {
		t.Errorf("cores in thousandths: %+v", reason.Params)
	}
}

func TestBorrowing(t *testing.T) {
	key := DeviceKey("nvidia/gpu", "A800")
	project := &Project{Name: "p", Quotas: []Quota{{Kind: "nvidia/gpu", Guaranteed: 4}, {Kind: QuotaCPU}}}
	for _, c := range []struct {
		name          string
		project       *Project
		held          int64 // of the whole project
		of            QuotaUsage
		borrows, owns bool // holding of; taking of on top
	}{
		{"at its guarantee", project, 4, QuotaUsage{key: 2}, false, false},
		{"above it", project, 5, QuotaUsage{key: 2}, true, false},
		{"above it, but not with this gang", project, 5, QuotaUsage{DeviceKey("x/y", "z"): 2}, false, false},
		{"room for this gang", project, 2, QuotaUsage{key: 2}, false, true},
		{"cores under a quota that says nothing", project, 2, QuotaUsage{QuotaCPU: 1000}, false, false},
		{"no record", nil, 9, QuotaUsage{key: 2}, false, false},
	} {
		usage := &ProjectUsage{QuotaUsage: QuotaUsage{key: c.held, QuotaCPU: 1000}}
		if got := Borrows(c.project, usage, c.of); got != c.borrows {
			t.Errorf("%s: borrows %v", c.name, got)
		}
		if got := WithinGuarantee(c.project, usage, c.of); got != c.owns {
			t.Errorf("%s: within its guarantee %v", c.name, got)
		}
	}
}

// TestHoldingsAddUp: what is added and taken away again leaves nothing, and no
// operand changes.
func TestHoldingsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := rapid.MapOf(rapid.SampledFrom([]string{"cpu", "a/b/c", "a/b/d"}), rapid.Int64Range(1, 9))
		a, b := QuotaUsage(draw.Draw(t, "a")), QuotaUsage(draw.Draw(t, "b"))
		wasA, wasB := maps.Clone(a), maps.Clone(b)
		if got := a.Add(b).Sub(b); !maps.Equal(got, a) {
			t.Fatalf("%v + %v - %v = %v", a, b, b, got)
		}
		if got := a.Sub(a); len(got) != 0 {
			t.Fatalf("%v is left", got)
		}
		if !maps.Equal(a, wasA) || !maps.Equal(b, wasB) {
			t.Fatal("an operand changed")
		}
		quota := Quota{Kind: "a/b"}
		if a.Add(b).Of(quota) != a.Of(quota)+b.Of(quota) {
			t.Fatalf("%v and %v do not add up", a, b)
		}
	})
}

// TestHeldByCountsWhatItGets: cores in thousandths and devices by their model.
func TestHeldByCountsWhatItGets(t *testing.T) {
	node := &Node{}
	for _, id := range []string{"0", "1", "2", "3", "4"} {
		node.Devices = append(node.Devices, Device{ID: id, Kind: "nvidia/gpu", Model: "NVIDIA A800-SXM4-80GB"})
	}
	node.Devices[1].Model, node.Devices[4].Kind = "NVIDIA A100", "huawei/npu"
	got := QuotaUsageOf(Resources{CPU: 1.5}, node, []string{"0", "1", "2", "4", "no such device"})
	want := QuotaUsage{QuotaCPU: 1500, "nvidia/gpu/NVIDIA A800-SXM4-80GB": 2, "nvidia/gpu/NVIDIA A100": 1, "huawei/npu/NVIDIA A800-SXM4-80GB": 1}
	if !maps.Equal(got, want) {
		t.Errorf("held %v, want %v", got, want)
	}
}

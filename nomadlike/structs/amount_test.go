package structs

import (
	"math"
	"testing"
)

func TestMilliCPU(t *testing.T) {
	for _, c := range []struct {
		cores float64
		want  int64
	}{{0, 0}, {-1, 0}, {math.NaN(), 0}, {math.Inf(-1), 0}, {0.1, 100}, {1.0005, 1001}, {2.5, 2500}, {math.Inf(1), milliMax}, {1e300, milliMax}} {
		if got := MilliCPU(c.cores); got != c.want {
			t.Errorf("MilliCPU(%v) = %d, want %d", c.cores, got, c.want)
		}
	}
}

func TestModelMatches(t *testing.T) {
	for _, c := range []struct {
		model, want string
		match       bool
	}{
		{"NVIDIA A800-SXM4-80GB", "A800", true},
		{"NVIDIA A800-SXM4-80GB", "a800", true},
		{"NVIDIA A800-SXM4-80GB", "A80", false},
		{"NVIDIA A100", "A10", false},
		{"NVIDIA H200", "H20", false},
		{"Ascend910B3", "910B", true},
		{"Ascend910B3", "Ascend910B3", true},
		{"Ascend910B3", "Ascend910B4", false},
		{"Ascend1910", "910", false},
		{"", "A800", false},
		{"anything", "", true},
	} {
		if got := modelMatches(c.model, c.want); got != c.match {
			t.Errorf("modelMatches(%q, %q) = %v, want %v", c.model, c.want, got, c.match)
		}
	}
}

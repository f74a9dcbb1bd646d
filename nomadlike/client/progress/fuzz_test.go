package progress

import (
	"math"
	"testing"
	"time"

	"nomadlike/nomadlike/structs"
)

// FuzzLine: whatever a task logs, the watches read it, and find no figure that
// is none.
func FuzzLine(f *testing.F) {
	for _, line := range []string{"hardware time is 1.5 and e2e time is 0", "step 9223372036854775808", "iter: 3", "\xff\x00", "hardware time is NaN and e2e time is 1e999"} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		meter, err := NewMeter(structs.Performance{Threshold: 0.5, Compare: "gt", Times: 1})
		if err != nil {
			t.Fatal(err)
		}
		if found, ok := meter.Line(line); ok && (math.IsNaN(found.Value) || math.IsInf(found.Value, 0)) {
			t.Errorf("figure %v of %q", found.Value, line)
		}
		pulse, err := NewPulse(structs.Hang{Factor: 2, Least: 1, Most: 2}, 0)
		if err != nil {
			t.Fatal(err)
		}
		for at := range 3 {
			pulse.Line(line, time.Duration(at)*time.Second)
		}
		if pulse.Limit() < 0 {
			t.Errorf("limit is %v", pulse.Limit())
		}
	})
}

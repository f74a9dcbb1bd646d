package progress

import (
	"cmp"
	"math"
	"regexp"
	"strconv"

	"nomadlike/nomadlike/structs"
)

// Meter is the performance watch of one task.
type Meter struct {
	policy  structs.Performance
	pattern *regexp.Regexp
	bad     int  // lines in a row
	told    bool // of this row of bad lines
}

// NewMeter makes the watch that a job asks for; its pattern was checked when
// the job was admitted.
func NewMeter(policy structs.Performance) (*Meter, error) {
	pattern, err := regexp.Compile(cmp.Or(policy.Pattern, structs.PerformancePattern))
	if err != nil {
		return nil, err
	}
	policy.Times = max(policy.Times, 1)
	return &Meter{policy: policy, pattern: pattern}, nil
}

// Line takes a line of the log. It returns a finding when as many lines in a row
// as the policy says were on the bad side of the threshold, once for each row.
// Lines without the figure change nothing.
func (m *Meter) Line(line []byte) (structs.Slowness, bool) {
	value, ok := figure(m.pattern, line)
	if !ok {
		return structs.Slowness{}, false
	}
	if bad := value > m.policy.Threshold; bad != (m.policy.Compare != "lt") || value == m.policy.Threshold {
		m.bad, m.told = 0, false
		return structs.Slowness{}, false
	}
	if m.bad++; m.told || m.bad < m.policy.Times {
		return structs.Slowness{}, false
	}
	m.told = true
	return structs.Slowness{Value: value, Threshold: m.policy.Threshold, Times: m.bad}, true
}

// figure reads what a pattern finds in a line: a number, or the quotient of two.
func figure(pattern *regexp.Regexp, line []byte) (float64, bool) {
	found := pattern.FindSubmatch(line)
	if len(found) < 2 {
		return 0, false
	}
	value, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		return 0, false
	}
	if len(found) > 2 {
		by, err := strconv.ParseFloat(string(found[2]), 64)
		if err != nil || by == 0 {
			return 0, false
		}
		value /= by
	}
	return value, !math.IsNaN(value) && !math.IsInf(value, 0)
}

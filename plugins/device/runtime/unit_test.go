package runtime

import (
	"encoding/json"
	"testing"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
)

// What the ascend plugin stored before it had this runtime is read as it was
// meant: all faults but that of a vanished chip are over when they are measured
// to be.
func TestFaultsOfAnEarlierForm(t *testing.T) {
	var faults Faults
	text := `{"network": {"action": "cordon", "since": "2026-11-21T08:00:00Z"}, "gone": {"action": "reboot"}}`
	if err := json.Unmarshal([]byte(text), &faults); err != nil {
		t.Fatal(err)
	}
	if len(faults) != 2 || faults[0].Code != Gone || faults[0].Measured || faults[1].Code != "network" || !faults[1].Measured || faults[1].Since.IsZero() {
		t.Errorf("%+v", faults)
	}
	again, err := json.Marshal(faults)
	if err != nil {
		t.Fatal(err)
	}
	var same Faults
	if err := json.Unmarshal(again, &same); err != nil || len(same) != 2 || same[1].Code != "network" {
		t.Errorf("%+v, %v", same, err)
	}
	if err := json.Unmarshal([]byte(`"nothing"`), &same); err == nil {
		t.Error("a text is taken for faults")
	}
}

// The story of one condition under each of its rules.
func TestJudge(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	subject := Subject{ID: "card-1", Say: func(name string, params ...any) *structs.Reason { return structs.NewReason(name, params...) }}
	for name, c := range map[string]struct {
		condition Condition
		want      []string // what is told after 0 s and 10 s of holding, and 40 s after its end
		stays     bool
	}{
		"at once":             {Condition{Action: device.ActCordon}, []string{"cordon", "", "over"}, false},
		"after a while":       {Condition{Action: device.ActCordon, After: 5 * time.Second}, []string{"", "cordon", "over"}, false},
		"sticky":              {Condition{Action: device.ActReset, Sticky: true}, []string{"reset", "", ""}, true},
		"a notice":            {Condition{Action: device.ActNotice}, []string{"notice", "", ""}, false},
		"a notice that stays": {Condition{Action: device.ActNotice, Kept: true}, []string{"notice", "", "over"}, false},
		"news each time":      {Condition{Action: device.ActNotice, Again: true}, []string{"notice", "notice", ""}, false},
		"nothing":             {Condition{}, []string{"", "", ""}, false},
		"long in ending":      {Condition{Action: device.ActCordon, Calm: time.Hour}, []string{"cordon", "", ""}, true},
	} {
		unit, now := &Unit{}, start
		for i, holds := range []bool{true, true, false} {
			c.condition.Code, c.condition.Holds = "hot", holds
			got := ""
			if event, _ := unit.Judge(c.condition, subject, now); event != nil {
				if got = string(event.Action); got == "" {
					got = "over"
				}
			}
			if got != c.want[i] {
				t.Errorf("%s: step %d tells %q, want %q", name, i, got, c.want[i])
			}
			now = now.Add([]time.Duration{10 * time.Second, 40 * time.Second, 0}[i])
		}
		if stays := len(unit.Faults) > 0; stays != c.stays {
			t.Errorf("%s: faults %+v", name, unit.Faults)
		}
	}
}

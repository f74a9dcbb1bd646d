package command

import "testing"

// FuzzArguments: words of the command line are understood or refused.
func FuzzArguments(f *testing.F) {
	for _, text := range []string{"off", "idle:", "idle:500", "idle:-1s", "keep:2s", "idle:99999999999", "-1", "7", "999999999999999999999"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if idle, ok := parseIdle(text); ok && idle < 0 {
			t.Errorf("%q keeps %v", text, idle)
		}
		if rank, err := parseRank(text); err == nil && rank < -1 {
			t.Errorf("%q is rank %d", text, rank)
		}
	})
}

package watch

import (
	"testing"
)

func TestLogFacts(t *testing.T) {
	for tail, want := range map[string]string{
		"usage: t.py [-h]\nt.py: error: unrecognized arguments: --local-rank=0\nTraceback": "--local-rank",
		"t.py: error: unrecognized arguments: -v --local_rank=3\n":                         "--local_rank",
		"t.py: error: unrecognized arguments: --lr=3\nuse --local-rank\n":                  "",
		"t.py: error: unrecognized arguments: --local-ranks\n":                             "",
		"": "",
	} {
		if got := logFacts([]byte(tail))["log.launch_argument"]; got != want {
			t.Errorf("%q: %q, want %q", tail, got, want)
		}
	}
}

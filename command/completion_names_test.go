package command

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What a name is wanted for follows from the help of the verb and from its flags.
func TestCompletionKnowsNouns(t *testing.T) {
	for line, want := range map[string]string{
		"job wait":                      "JOB",
		"job wait a b":                  "JOB",
		"job stop -reason words a":      "JOB",
		"job stop -reason":              "",
		"job status":                    "JOB",
		"job status a":                  "",
		"job diff a":                    "JOB",
		"job package":                   "JOB",
		"job exec a":                    "COMMAND",
		"job exec a sh":                 "COMMAND",
		"job run":                       "FILE",
		"job run -after":                "JOB",
		"job run -after a:failed x.hcl": "",
		"job wait -timeout=1h":          "JOB",
		"job wait -nonsense":            "",
		"job stop -wait":                "JOB",
		"node drain":                    "NODE",
		"node status n1":                "",
		"device list -node":             "NODE",
		"device list -pool":             "POOL",
		"pool status":                   "POOL",
		"complete-words job":            "",
		"queue":                         "",
	} {
		before := strings.Fields(line)
		v, _, ok := find(before)
		if !ok {
			t.Errorf("%q is no verb", line)
		} else if got := noun(v, before); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

// A shell would obey what stands in a name.
func TestCompletionOffersPlainNamesAlone(t *testing.T) {
	got := offered([]string{"n1", "n1", "$(reboot)", "n2;ls", "-rf", "n 3", "n*", "n\x1b[2J", "节点", "n-4.x_5", "m"}, "n")
	if diff := cmp.Diff([]string{"n1", "n-4.x_5"}, got); diff != "" {
		t.Error(diff)
	}
}

package monitoring

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

var alertNames = regexp.MustCompile(`(?m)^ +- alert: (\w+)$`)

// TestRules: Prometheus's own tool takes the rules; every alert comes when it should,
// with the words that it should say, and stays away from a cluster that is well.
func TestRules(t *testing.T) {
	rules, err := os.ReadFile("nomadlike-alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	cases, err := os.ReadFile("testdata/rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	names := alertNames.FindAllStringSubmatch(string(rules), -1)
	if len(names) < 15 {
		t.Errorf("%d alerts", len(names))
	}
	for _, name := range names {
		if n := strings.Count(string(cases), "alertname: "+name[1]+"\n"); n != 2 {
			t.Errorf("testdata/rules.yml has %d cases of %s: one in which it comes and one in which it does not are wanted", n, name[1])
		}
	}
	tool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("no promtool is installed here: apt-get install prometheus")
	}
	for _, words := range [][]string{{"check", "rules", "nomadlike-alerts.yml", "nomadlike-dcgm.yml"}, {"test", "rules", "testdata/rules.yml"}} {
		if out, err := exec.Command(tool, words...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(words, " "), err, out)
		}
	}
}

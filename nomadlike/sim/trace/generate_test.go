package trace

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"nomadlike/internal/golden"
)

func written(t *testing.T, w Workload) string {
	t.Helper()
	made, pools := Generate(w)
	var b bytes.Buffer
	if err := made.Write(&b); err != nil {
		t.Fatal(err)
	}
	if err := WritePools(pools, &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestGenerateSameSeed: the same seed makes the same bytes, another seed
// others.
func TestGenerateSameSeed(t *testing.T) {
	w := Workload{Seed: 7, Jobs: 500, Days: 3, Users: 12, Pools: 2, Nodes: 6}
	first := written(t, w)
	if written(t, w) != first {
		t.Error("the same seed gave other bytes")
	}
	w.Seed = 8
	if written(t, w) == first {
		t.Error("another seed gave the same bytes")
	}
	lines := strings.SplitAfter(first, "\n")
	golden.Assert(t, "testdata/generated.golden", strings.Join(lines[:25], "")+"...\n"+strings.Join(lines[501:], ""))
}

// TestGenerateHabits: the trace looks as its description says.
func TestGenerateHabits(t *testing.T) {
	w := Workload{Seed: 3, Jobs: 20_000}
	made, pools := Generate(w)
	if len(made.Jobs) != 20_000 || len(pools) != 3 {
		t.Fatalf("%d jobs, %d pools", len(made.Jobs), len(pools))
	}
	var night, noon, weekend, weekday int
	var busy float64
	states := make(map[string]int)
	runs := make([]time.Duration, 0, len(made.Jobs))
	over := make([]float64, 0, len(made.Jobs))
	for _, j := range made.Jobs {
		switch hour := int(j.Submit.Hours()) % 24; {
		case hour < 6:
			night++
		case hour >= 10 && hour < 16:
			noon++
		}
		if int(j.Submit/day)%7 >= 5 {
			weekend++
		} else {
			weekday++
		}
		busy += j.Duration.Seconds() * float64(j.GPUs)
		states[j.State]++
		runs = append(runs, j.Duration)
		over = append(over, float64(j.Limit)/float64(j.Duration))
		if j.Duration > j.Limit || j.Limit == 0 || j.Duration < time.Second {
			t.Fatalf("job %s runs %s under a limit of %s", j.ID, j.Duration, j.Limit)
		}
	}
	slices.Sort(runs)
	slices.Sort(over)
	at := func(p int) time.Duration { return runs[len(runs)*p/100] }
	if night*6 > noon {
		t.Errorf("%d submissions at night, %d around noon", night, noon)
	}
	if weekend*5 > weekday*2 {
		t.Errorf("%d submissions at weekends, %d on other days", weekend, weekday)
	}
	if at(99) < 50*at(50) || at(50) > 2*time.Hour {
		t.Errorf("run times are not heavy-tailed: median %s, 99th %s", at(50), at(99))
	}
	if over[len(over)/2] < 3 {
		t.Errorf("the median limit is only %.1f times the run time", over[len(over)/2])
	}
	if load := busy / (24 * 8 * 30 * 86400); load < 0.75 || load > 0.9 {
		t.Errorf("load %.2f, want about 0.85", load)
	}
	for _, state := range []string{"Pass", "Failed", "Killed", "Timeout"} {
		if share := float64(states[state]) / float64(len(made.Jobs)); share < 0.002 {
			t.Errorf("only %.2f %% of jobs end as %s", share*100, state)
		}
	}
}

// TestGeneratePools: nodes are dealt out whole, whatever was asked for.
func TestGeneratePools(t *testing.T) {
	for _, nodes := range []int{1, 2, 3, 10, 24, 100} {
		for _, count := range []int{1, 2, 3, 7, 30} {
			_, pools := Generate(Workload{Jobs: 1, Nodes: nodes, Pools: count})
			sum := 0
			for _, pool := range pools {
				sum += pool.Nodes
			}
			descending := slices.IsSortedFunc(pools, func(a, b Pool) int { return cmp.Compare(b.Nodes, a.Nodes) })
			if sum != nodes || len(pools) != min(nodes, count) || !descending || pools[len(pools)-1].Nodes < 1 {
				t.Errorf("%d nodes in %d pools: %s", nodes, count, fmt.Sprint(pools))
			}
		}
	}
}

package jobspec

import (
	"fmt"
	"strings"
	"testing"

	"nomadlike/internal/golden"
	"nomadlike/nomadlike/structs"
)

// TestDifferences: what two job files differ in, as a person reads it.
func TestDifferences(t *testing.T) {
	const before = `job "resnet-2" {
  nodes = 2
  time_limit = "4h"
  resources {
    cpu    = 8
    memory = "64GiB"
    device "nvidia/gpu" {
      count = 8
      model = "A800"
    }
  }
  distributed "pytorch" {}
  task {
    driver  = "docker"
    image   = "train:1.4"
    command = "python train.py --batch-size 256 --lr=0.1 --amp"
    env = { OMP_NUM_THREADS = "8", NCCL_DEBUG = "WARN" }
  }
  dataset "imagenet" { version = 3 }
  dataset "labels" {}
  algorithm "resnet" { version = 7 }
  checkpoint { max_resumes = 3 }
}
`
	after := before
	for _, change := range [][2]string{
		{`"resnet-2"`, `"resnet-3"`},
		{"nodes = 2", "nodes = 4"},
		{`time_limit = "4h"`, "time_limit {\nlimit = \"6h\"\nwarn = \"5m\"\n}"},
		{`memory = "64GiB"`, `memory = "96GiB"`},
		{"train:1.4", "train:1.5"},
		{"--batch-size 256 --lr=0.1 --amp", "--lr=0.1 --batch-size 320 --compile"},
		{`OMP_NUM_THREADS = "8"`, `OMP_NUM_THREADS = "16"`},
		{`NCCL_DEBUG = "WARN"`, `LR_WARMUP = "100"`},
		{`dataset "imagenet" { version = 3 }` + "\n" + `  dataset "labels" {}`, `dataset "labels" {}` + "\n" + `  dataset "imagenet" { version = 4 }` + "\n" + `  dataset "extra" {}`},
		{"version = 7", "version = 8"},
		{"checkpoint { max_resumes = 3 }", "restart { max_restarts = 1 }"},
	} {
		if !strings.Contains(after, change[0]) {
			t.Fatalf("%q is not in the file", change[0])
		}
		after = strings.Replace(after, change[0], change[1], 1)
	}
	a, b := admittedOf(t, before), admittedOf(t, after)
	golden.Assert(t, "testdata/differences.golden", differenceTable(Differences(a, b)))
	if same := Differences(a, a.Copy()); len(same) != 0 {
		t.Errorf("a job differs from itself: %+v", same)
	}
	there, back := Differences(a, b), Differences(b, a)
	if len(there) != len(back) {
		t.Errorf("%d differences one way, %d the other", len(there), len(back))
	}
}

func admittedOf(t *testing.T, text string) *structs.Job {
	t.Helper()
	job := parsed(t, "job.hcl", []byte(text))
	job.SetDefaults()
	return job
}

func differenceTable(list []structs.Difference) string {
	var out strings.Builder
	for _, one := range list {
		fmt.Fprintf(&out, "%-36s %-14s %s\n", one.Path, or(one.Before), or(one.After))
	}
	return out.String()
}

func or(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// TestCommandDifferences: options of commands are told one by one only where it is
// certain where each begins and ends.
func TestCommandDifferences(t *testing.T) {
	for _, test := range []struct{ before, after, want string }{
		{"python t.py --lr 1 --b 2", "python t.py --lr 1 --b 3", "c --b: 2 > 3"},
		{"bash -c 'python t.py --lr 1'", "bash -c 'python t.py --lr 2'", "c --lr: 1 > 2"},
		{"LR=1 python t.py", "LR=2 python t.py", "c LR: 1 > 2"},
		{"python t.py --a", "python t.py --a --b", "c --b:  > ✓"},
		{"python t.py --a 1 \\\n  --b 2", "python t.py --a 1 \\\n  --b 3", "c --b: 2 > 3"},
		{"python t.py --lr 1", "python u.py --lr 2", "c: python t.py --lr 1 > python u.py --lr 2"},
		{"a --m 'x y'", "a --m 'x z'", "c: a --m 'x y' > a --m 'x z'"},
		{"a --m 1 --m 2", "a --m 1 --m 3", "c: a --m 1 --m 2 > a --m 1 --m 3"},
		{"a  b", "a b", "c: a  b > a b"},
	} {
		var got []string
		for _, one := range commandDifferences("c", test.before, test.after) {
			got = append(got, fmt.Sprintf("%s: %s > %s", one.Path, one.Before, one.After))
		}
		if text := strings.Join(got, "; "); text != test.want {
			t.Errorf("%q, %q: %s, want %s", test.before, test.after, text, test.want)
		}
	}
}

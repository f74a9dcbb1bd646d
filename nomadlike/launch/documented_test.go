package launch

import (
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"

	"nomadlike/nomadlike/structs"
)

// documentedModes are the modes whose variables the guide lists, with a word that its
// rows begin with.
var documentedModes = map[string]structs.Mode{
	"pytorch": structs.ModePyTorch, "tensorflow": structs.ModeTensorFlow, "jax": structs.ModeJAX, "mindspore": structs.ModeMindSpore, "mpi": structs.ModeMPI,
}

// TestDocumentedVariablesAreThere reads the guide's table of what a rank finds: every
// variable that it names is in the environment of a rank, of the mode that its row is about.
func TestDocumentedVariablesAreThere(t *testing.T) {
	name := regexp.MustCompile("`(" + `[A-Z][A-Z0-9_]+(\*|<name>)?` + ")`")
	for _, language := range []string{"en", "zh"} {
		text, err := os.ReadFile("../../website/guide/" + language + "/job-files.md")
		if err != nil {
			t.Fatal(err)
		}
		_, table, found := strings.Cut(string(text), "| `NOMADLIKE_JOB_ID`")
		table, _, ended := strings.Cut("| `NOMADLIKE_JOB_ID`"+table, "\n\n")
		if !found || !ended {
			t.Fatalf("%s: there is no table of variables", language)
		}
		seen := 0
		for row := range strings.Lines(table) {
			cell, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " | ")
			if strings.Contains(cell, "NCCL_") || strings.Contains(cell, "/etc/") { // of the node's cards; files
				continue
			}
			mode := structs.ModeNone
			for word, of := range documentedModes {
				if strings.HasPrefix(cell, word) {
					mode = of
				}
			}
			out := documentedRank(t, mode, func(job *structs.Job) {
				job.Sweep = &structs.Sweep{Method: structs.SweepGrid, Params: []structs.SweepParam{{Name: "lr", Values: []string{"0.1"}}}}
			})
			array := documentedRank(t, mode, func(job *structs.Job) { job.Batch = &structs.Batch{Count: 1, Array: "7"} })
			for _, match := range name.FindAllStringSubmatch(cell, -1) {
				wanted, prefix := strings.CutSuffix(strings.TrimSuffix(match[1], "<name>"), "*")
				prefix = prefix || strings.HasSuffix(match[1], "<name>")
				there := false
				for has, value := range joined(out.Env, array.Env) {
					there = there || value != "" && (has == wanted || prefix && strings.HasPrefix(has, wanted))
				}
				if seen++; !there {
					t.Errorf("%s: the guide names %s for mode %q, which a rank does not have", language, match[1], mode)
				}
			}
		}
		if seen < 35 {
			t.Errorf("%s: only %d variables are named", language, seen)
		}
	}
}

func joined(a, b map[string]string) map[string]string {
	all := maps.Clone(b)
	maps.Copy(all, a)
	return all
}

// documentedRank is rank 1 of two of a job that asks for everything.
func documentedRank(t *testing.T, mode structs.Mode, more func(*structs.Job)) Launch {
	t.Helper()
	job := &structs.Job{
		ID: "j", Number: 7, Name: "doc", Project: "default", Nodes: 2, Distributed: structs.Distributed{Mode: mode},
		Task: structs.Task{Driver: structs.DriverExec, Command: "python3 train.py"}, Resources: []structs.Resources{{CPU: 1}}, Workdir: &structs.Workdir{Source: "."},
	}
	more(job)
	members := []structs.Member{
		{Name: "doc-1-0", Addr: "192.0.2.1", NodeName: "a", Ports: map[string]int{structs.MasterPortName: 20001, "http": 20002}},
		{Rank: 1, Name: "doc-1-1", Addr: "192.0.2.2", NodeName: "b", Ports: map[string]int{structs.MasterPortName: 20001, "http": 20002}},
	}
	if mode == structs.ModeMindSpore {
		job.Resources[0].Devices = []structs.DeviceRequest{{Kind: "huawei/npu", Count: 1}}
		for i := range members {
			members[i].Devices, members[i].Cards = []string{"npu-0"}, []structs.Card{{ID: "npu-0", IP: "10.0.0.1"}}
		}
	}
	node := Somewhere(job)
	node.Interface = "eth0"
	out, err := Build(Input{
		Job: job, Members: members, Node: node,
		Alloc: &structs.Allocation{ID: "al", Attempt: 1, Rank: 1, Spec: job.Resources[0], Ports: members[1].Ports, Devices: members[1].Devices},
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

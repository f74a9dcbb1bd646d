package launch

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nomadlike/nomadlike/structs"
)

// unevenGang is a gang whose nodes have different numbers of cards.
func unevenGang(j *structs.Job, rank int) Input {
	in := input(j, rank)
	for i := range in.Members {
		for k := range 1 + (i+1)%3 {
			in.Members[i].Cards = append(in.Members[i].Cards, structs.Card{
				ID: fmt.Sprintf("npu-%d-%d", i, k), Index: k,
				IP: fmt.Sprintf("192.168.%d.%d", i, k+10), SuperID: fmt.Sprint(i*8 + k), SuperPod: fmt.Sprint(i / 2),
			})
			in.Members[i].Devices = append(in.Members[i].Devices, fmt.Sprintf("npu-%d-%d", i, k))
		}
	}
	return in
}

// What lists the whole gang is the same bytes for every rank, whether the ranks
// share a Gang, as many at a time, or each works it out on its own node.
func TestWhatListsTheGangIsTheSameForAll(t *testing.T) {
	const ranks = 5
	tables := func(form string) *structs.Job {
		j := job(structs.ModeMindSpore, ranks, "python3 train.py")
		j.Distributed.RankTable = form
		return j
	}
	for name, j := range map[string]*structs.Job{
		"rank table 1.0": tables("v1.0"), "rank table 1.2": tables("v1.2"), "group list": tables("group_list"),
		"short group list": tables("group_list_short"), "TF_CONFIG": job(structs.ModeTensorFlow, ranks, "python3 train.py"),
		"deepspeed": job(structs.ModeDeepSpeed, ranks, "deepspeed train.py"),
	} {
		t.Run(name, func(t *testing.T) {
			in := unevenGang(j, 0)
			gang, err := NewGang(in.Members)
			if err != nil {
				t.Fatal(err)
			}
			shared, own := make([]string, ranks), make([]string, ranks)
			var all sync.WaitGroup
			for rank := range ranks {
				all.Go(func() {
					one := unevenGang(j, rank)
					one.Gang = gang
					shared[rank] = listOf(t, one)
					one.Gang = nil
					own[rank] = listOf(t, one)
				})
			}
			all.Wait()
			for rank := range ranks {
				if shared[rank] == "" || shared[rank] != shared[0] || own[rank] != shared[0] {
					t.Errorf("rank %d: %s", rank, cmp.Diff(shared[0], own[rank]))
				}
			}
		})
	}
}

// listOf is what a rank is told of the whole gang.
func listOf(t *testing.T, in Input) string {
	out, err := Build(in)
	if err != nil {
		t.Error(err)
		return ""
	}
	if text := out.Env["TF_CONFIG"]; text != "" {
		var config struct{ Cluster json.RawMessage }
		if err := json.Unmarshal([]byte(text), &config); err != nil {
			t.Error(err)
		}
		return string(config.Cluster)
	}
	var all strings.Builder
	for _, file := range out.Files {
		all.WriteString(file.Path + "\n" + file.Content)
	}
	return all.String()
}

// A spec that asks for all cards of a node has nodes of different sizes; MPI is
// told how many processes each takes.
func TestHostFilesCountTheCardsOfEachNode(t *testing.T) {
	j := job(structs.ModeHorovod, 3, "python3 train.py")
	out, err := Build(unevenGang(j, 0))
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	for _, file := range out.Files {
		files[file.Path] = file.Content
	}
	if got, want := files[mpiHostFile], "digits-2-0 slots=2\ndigits-2-1 slots=3\ndigits-2-2 slots=1\n"; got != want {
		t.Errorf("host file %q", got)
	}
	if got, want := files[mpiHydraFile], "digits-2-0:2\ndigits-2-1:3\ndigits-2-2:1\n"; got != want {
		t.Errorf("host file %q", got)
	}
	if command := structs.JoinCommand(out.Command); !strings.Contains(command, " -np 6 ") {
		t.Errorf("command %s", command)
	}
}

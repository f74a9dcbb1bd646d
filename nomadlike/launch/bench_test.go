package launch

import (
	"syscall"
	"testing"
	"time"

	"nomadlike/nomadlike/structs"
)

const benchRanks = 1000

// benchGang is a gang of a thousand nodes with eight cards each.
func benchGang(mode structs.Mode, table string) (*structs.Job, []structs.Member) {
	job := &structs.Job{
		ID: "job", Name: "train", Project: "p", Nodes: benchRanks, Distributed: structs.Distributed{Mode: mode, RankTable: table},
		Resources: []structs.Resources{{CPU: 8, Memory: 1 << 30, Devices: []structs.DeviceRequest{{Kind: "huawei/npu", Count: 8}}}},
		Task:      structs.Task{Driver: "exec", Command: "python3 train.py --epochs 90"},
	}
	members := make([]structs.Member, benchRanks)
	for rank := range members {
		members[rank] = structs.Member{Rank: rank, Name: structs.RankName(job, 0, 1, rank), AllocID: "a", Addr: "192.0.2.1", Ports: map[string]int{"master": 20000}}
		for i := range 8 {
			members[rank].Cards = append(members[rank].Cards, structs.Card{ID: "npu", Index: i, IP: "198.51.100.1"})
		}
	}
	return job, members
}

// BenchmarkThousandRanks plans the launch of every rank of a gang of a thousand
// nodes, with what they have in common worked out once.
func BenchmarkThousandRanks(b *testing.B) {
	for _, c := range []struct {
		name  string
		mode  structs.Mode
		table string
	}{
		{"pytorch", structs.ModePyTorch, ""},
		{"deepspeed", structs.ModeDeepSpeed, ""},
		{"horovod", structs.ModeHorovod, ""},
		{"tensorflow", structs.ModeTensorFlow, ""},
		{"jax", structs.ModeJAX, ""},
		{"mindspore-v1.0", structs.ModeMindSpore, "v1.0"},
		{"mindspore-v1.2", structs.ModeMindSpore, "v1.2"},
		{"mindspore-group_list", structs.ModeMindSpore, "group_list"},
		{"mindspore-group_list_short", structs.ModeMindSpore, "group_list_short"},
	} {
		b.Run(c.name, func(b *testing.B) {
			job, members := benchGang(c.mode, c.table)
			before := cpuTime(b)
			for b.Loop() {
				gang, err := NewGang(members)
				if err != nil {
					b.Fatal(err)
				}
				for rank := range members {
					if _, err := Build(benchInput(job, members, rank, gang)); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64((cpuTime(b)-before).Microseconds())/1e3/float64(b.N), "cpu-ms/op")
		})
	}
}

// cpuTime is what this process has used: on a machine that does other things the
// time on the wall says little.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkOneOfThousand is the launch of one rank, which is what a node waits for.
func BenchmarkOneOfThousand(b *testing.B) {
	for _, mode := range []structs.Mode{structs.ModePyTorch, structs.ModeTensorFlow, structs.ModeMindSpore} {
		b.Run(string(mode), func(b *testing.B) {
			job, members := benchGang(mode, "")
			for b.Loop() {
				if _, err := Build(benchInput(job, members, 7, nil)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func benchInput(job *structs.Job, members []structs.Member, rank int, gang *Gang) Input {
	return Input{
		Job: job, Members: members, Gang: gang, Node: NodeFacts{TaskDir: "/task", AgentPath: "/nomadlike", PrivateHosts: true},
		Alloc: &structs.Allocation{ID: "a", Attempt: 1, Rank: rank, Name: members[rank].Name, Spec: job.Resources[0], Ports: members[rank].Ports},
	}
}

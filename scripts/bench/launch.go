package main

import (
	"context"
	"runtime/debug"
	"syscall"
	"time"

	"nomadlike/nomadlike/launch"
	"nomadlike/nomadlike/structs"
)

const (
	launchRanks = 1000
	launchRuns  = 20
)

// launchPlans works out the command, environment and files of every rank of a gang
// of a thousand nodes with eight cards each, on one core. Garbage is collected as
// the agent does: the texts of TensorFlow are 24 MB, and nothing of them stays.
func launchPlans(_ context.Context, _ *bench) error {
	defer debug.SetGCPercent(debug.SetGCPercent(serverGC))
	for _, c := range []struct {
		name string
		mode structs.Mode
	}{{"pytorch", structs.ModePyTorch}, {"tensorflow", structs.ModeTensorFlow}, {"mindspore", structs.ModeMindSpore}} {
		job, members := thousandRanks(c.mode)
		var wall, cpu []float64
		for range launchRuns {
			began, used := time.Now(), cpuUsed()
			gang, err := launch.NewGang(members)
			if err != nil {
				return err
			}
			for rank := range members {
				_, err := launch.Build(launch.Input{
					Job: job, Members: members, Gang: gang,
					Node:  launch.NodeFacts{TaskDir: "/task", AgentPath: "/nomadlike", PrivateHosts: true},
					Alloc: &structs.Allocation{ID: "a", Attempt: 1, Rank: rank, Name: members[rank].Name, Spec: job.Resources[0], Ports: members[rank].Ports},
				})
				if err != nil {
					return err
				}
			}
			wall = append(wall, time.Since(began).Seconds()*1e3)
			cpu = append(cpu, (cpuUsed()-used).Seconds()*1e3)
		}
		report("launch_1000_ranks_"+c.name+"_ms", "ms", wall)
		report("launch_1000_ranks_"+c.name+"_cpu_ms", "ms", cpu)
	}
	return nil
}

// cpuUsed is the processor time of this process: on a machine that does other
// things it says more than the time on the wall.
func cpuUsed() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err) // it has no reason to fail
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func thousandRanks(mode structs.Mode) (*structs.Job, []structs.Member) {
	job := &structs.Job{
		ID: "job", Name: "train", Project: "p", Nodes: launchRanks, Distributed: structs.Distributed{Mode: mode},
		Resources: []structs.Resources{{CPU: 8, Memory: 1 << 30, Devices: []structs.DeviceRequest{{Kind: "huawei/npu", Count: 8}}}},
		Task:      structs.Task{Driver: "exec", Command: "python3 train.py --epochs 90"},
	}
	members := make([]structs.Member, launchRanks)
	for rank := range members {
		m := structs.Member{Rank: rank, Name: structs.RankName(job, 0, 1, rank), AllocID: "a", Addr: "192.0.2.1", Ports: map[string]int{structs.MasterPortName: 20000}}
		for card := range 8 {
			m.Cards = append(m.Cards, structs.Card{ID: "npu", Index: card, IP: "198.51.100.1"})
		}
		members[rank] = m
	}
	return job, members
}

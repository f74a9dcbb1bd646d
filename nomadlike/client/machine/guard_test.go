package machine

import (
	"fmt"
	"testing"

	"nomadlike/nomadlike/client/account"
	"nomadlike/nomadlike/client/firewall"
	"nomadlike/nomadlike/structs"
)

func TestMeeting(t *testing.T) {
	with := func(change func(a *structs.Assignment)) *structs.Assignment {
		rank := &structs.Assignment{Job: new(structs.Job), Alloc: &structs.Allocation{NodeID: "n2", Rank: 1}}
		for i := range 3 {
			addr := fmt.Sprintf("10.0.0.%d", i+1)
			rank.Members = append(rank.Members, structs.Member{
				Rank: i, NodeID: fmt.Sprintf("n%d", i+1), Addr: addr, Addrs: []string{addr, fmt.Sprintf("192.168.0.%d", i+1)},
			})
		}
		rank.Members[0].Ports = map[string]int{structs.MasterPortName: 29500, "http": 8080}
		change(rank)
		return rank
	}
	for _, c := range []struct {
		name   string
		change func(a *structs.Assignment)
		uid    int
		want   string
	}{
		{"rank 1 of three", func(*structs.Assignment) {}, 7, "10.0.0.1:29500: users 7\n"},
		{
			"rank 0", func(a *structs.Assignment) { a.Alloc.NodeID = "n1" }, 7,
			"port 29500 here: users 7, from 10.0.0.1 10.0.0.2 10.0.0.3 192.168.0.1 192.168.0.2 192.168.0.3\n",
		},
		{
			"rank 0 as root", func(a *structs.Assignment) { a.Alloc.NodeID = "n1" }, 0,
			"port 29500 here: any user, from 10.0.0.1 10.0.0.2 10.0.0.3 192.168.0.1 192.168.0.2 192.168.0.3\n",
		},
		{
			"rank 0 in a container", func(a *structs.Assignment) { a.Alloc.NodeID, a.Job.Task.Driver = "n1", structs.DriverDocker }, 7,
			"port 29500 here: any user, from 10.0.0.1 10.0.0.2 10.0.0.3 192.168.0.1 192.168.0.2 192.168.0.3\n",
		},
		{"addresses of one node are not known", func(a *structs.Assignment) { a.Alloc.NodeID, a.Members[2].Addrs = "n1", nil }, 7, "port 29500 here: users 7\n"},
		{"an address is none", func(a *structs.Assignment) { a.Alloc.NodeID, a.Members[2].Addrs = "n1", []string{"10.0.0.3", "x"} }, 7, "port 29500 here: users 7\n"},
		{"every rank has a port", func(a *structs.Assignment) {
			for i := range a.Members {
				a.Members[i].Ports = map[string]int{structs.MasterPortName: 20000 + i}
			}
			a.Members[2].NodeID, a.Members[2].Addr = a.Members[1].NodeID, a.Members[1].Addr
		}, 7, "port 20001 here: users 7, from 10.0.0.1 10.0.0.2 192.168.0.1 192.168.0.2\nport 20002 here: users 7, from 10.0.0.1 10.0.0.2 192.168.0.1 192.168.0.2\n10.0.0.1:20000: users 7\n"},
		{"agents of one machine", func(a *structs.Assignment) { a.Members[1].Addr = a.Members[0].Addr }, 7, ""},
		{"a node without an address", func(a *structs.Assignment) { a.Members[1].Addr = "" }, 7, ""},
		{"no port", func(a *structs.Assignment) { a.Members[0].Ports = nil }, 7, ""},
	} {
		meets, ok := meeting(with(c.change), account.Owner{UID: c.uid})
		got := ""
		if ok {
			got = firewall.String(firewall.Rules(map[string]firewall.Gang{"a": meets}))
		}
		if got != c.want {
			t.Errorf("%s:\n%swant\n%s", c.name, got, c.want)
		}
	}
}

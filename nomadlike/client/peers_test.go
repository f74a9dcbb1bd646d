package client

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/exec"
)

// TestPatrolOfNetwork: what befalls the network of a running gang is told, and
// that it is well again. Packets that are lost leave the gang where it is; a
// network card that is down sends it away.
func TestPatrolOfNetwork(t *testing.T) {
	p := newPair(t)
	ranks := p.gang("g", "sleep 300", 29600)
	listenIn(t, p.names[1], p.addrs[1]+":4646")
	p.prepare(t, ranks)
	p.release(ranks)
	first := ranks[0].Alloc.ID
	if checks := p.c.toldOf(first, structs.EventPrechecked, "checks"); len(checks) != 1 || !strings.Contains(checks[0], "network eth0") {
		t.Errorf("before the start: %q", checks)
	}
	wantStatus(t, p.c, first, structs.AllocRunning)

	loss := []string{"netns", "exec", p.names[1], "iptables", "-I", "INPUT", "-p", "tcp", "--dport", "4646", "--syn", "-m", "statistic", "--mode", "random", "--probability", "0.8", "-j", "DROP"}
	tool(t, "ip", loss...)
	eventually.Within(t, time.Minute, "lost packets are told", func() bool {
		return strings.Contains(strings.Join(p.c.toldOf(first, structs.EventPatrolFailed, "check"), " "), "network between nodes")
	})
	if cause := p.c.toldOf(first, structs.EventPatrolFailed, "cause")[0]; !strings.Contains(cause, "connections to n2 ("+p.addrs[1]+":4646) were lost") {
		t.Errorf("told %q", cause)
	}
	loss[4] = "-D"
	tool(t, "ip", loss...)
	eventually.Within(t, time.Minute, "and that they come again", func() bool { return p.wells(first) == 1 })
	if s := p.c.last(first).Status; s != structs.AllocRunning {
		t.Fatalf("the gang is %s after a loss of packets", s)
	}

	tool(t, "ip", "-n", p.names[0], "link", "set", "eth0", "down")
	r := wantEnd(t, p.c, first)
	if r.Status != structs.AllocFailed || !r.Infra || r.Cause == nil || r.Cause.ID != "client.patrol" || r.Cause.Params["device"] != "network eth0" {
		t.Errorf("report %+v with cause %+v", r, r.Cause)
	}

	again := p.gang("again", "sleep 300", 29601)
	p.c.assign(again...)
	r = wantEnd(t, p.c, again[0].Alloc.ID)
	if !r.Infra || r.Cause == nil || r.Cause.ID != "client.precheck" || r.Cause.Params["check"] != "network eth0" {
		t.Errorf("the next start there: %+v with cause %+v", r, r.Cause)
	}
	if told := p.c.toldOf(again[0].Alloc.ID, structs.EventPrecheckFailed, "check"); len(told) != 1 || told[0] != "network eth0" {
		t.Errorf("told %q", told)
	}
	p.end(t, again)
	p.c.change(ranks[1].Alloc.ID, func(a *structs.Allocation) { a.Desired = structs.DesiredStop })
	wantEnd(t, p.c, ranks[1].Alloc.ID)
}

// wells counts how often it was told that everything is well again.
func (p *pair) wells(id string) int { return len(p.c.toldOf(id, structs.EventPatrolWell, "")) }

// TestPatrolOfDisk: a disk that fills up while a rank runs is told, and that
// it has room again; the rank goes on. A start is refused meanwhile.
func TestPatrolOfDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to make a file system")
	}
	dir := tempDir(t)
	tool(t, "mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%d", (256<<20)+(8<<20)), "none", filepath.Dir(dir))
	t.Cleanup(func() { tool(t, "umount", "-l", filepath.Dir(dir)) })
	d, err := exec.New(exec.Config{StateDir: filepath.Join(dir, "exec"), Supervisor: []string{os.Args[0], "task-supervisor"}, Logger: testLogger(t), Isolation: exec.IsolationRaw})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	cleanUp(t, dir)
	c := newControl()
	n, _ := c.node(t, dir, "n1", map[string]driver.Driver{"exec": d}, func(config *Config) { config.PatrolEvery = 100 * time.Millisecond })
	eventually.Within(t, time.Minute, "the driver speaks", func() bool { return n.Node().Attributes["driver.exec.isolation"] != "" })
	job := func(name string) *structs.Assignment {
		a := gang(name, 1, "sleep 60", "n1")[0]
		a.Job.Checkpoint = &structs.Checkpoint{Precheck: true}
		return a
	}
	a := job("runs")
	c.assign(a)
	wantStatus(t, c, a.Alloc.ID, structs.AllocRunning)
	full := filepath.Join(filepath.Dir(dir), "full")
	if err := os.WriteFile(full, make([]byte, 16<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually.Within(t, time.Minute, "a full disk is told", func() bool {
		return slices.Equal(c.toldOf(a.Alloc.ID, structs.EventPatrolFailed, "check"), []string{"disk"})
	})
	b := job("starts")
	c.assign(b)
	if r := wantEnd(t, c, b.Alloc.ID); !r.Infra || r.Cause == nil || r.Cause.Params["check"] != "disk" {
		t.Errorf("a start on a full disk: %+v with cause %+v", r, r.Cause)
	}
	if err := os.Remove(full); err != nil {
		t.Fatal(err)
	}
	eventually.Within(t, time.Minute, "and that it has room again", func() bool { return len(c.toldOf(a.Alloc.ID, structs.EventPatrolWell, "")) == 1 })
	if s := c.last(a.Alloc.ID).Status; s != structs.AllocRunning {
		t.Errorf("the rank is %s", s)
	}
	c.change(a.Alloc.ID, func(a *structs.Allocation) { a.Desired = structs.DesiredStop })
	wantEnd(t, c, a.Alloc.ID)
}

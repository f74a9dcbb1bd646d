package server

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// TestRogueRegistration: a node that says too much of itself is not heard, and
// nothing of it comes into the log.
func TestRogueRegistration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		node := c.newNode("a")
		node.node.Attributes = map[string]string{}
		for i := range 2000 {
			node.node.Attributes["a"+strconv.Itoa(i)] = strings.Repeat("x", 4000) // 8 MB
		}
		node.connect(0)
		synctest.Wait()
		if structs.CodeOf(node.lastError()) != structs.CodeTooLarge {
			t.Errorf("8 MB of attributes give %v", node.lastError())
		}
		if c.servers[0].Store().Snapshot().Node("id-a") != nil {
			t.Error("it came into the log")
		}
	})
}

// TestOldNodesSpeakWhatTheyTold: which protocol an agent speaks is in the state,
// said by itself or, of one that does not know to say it, by who registers it.
func TestOldNodesSpeakWhatTheyTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		c.servers[0].config.Speaks = func(id string) int { return map[string]int{"id-old": 28, "id-new": 28}[id] }
		for name, told := range map[string]string{"old": "", "new": "31", "silent": ""} {
			node := c.newNode(name)
			if told != "" {
				node.node.Attributes = map[string]string{structs.AttrProtocol: told}
			}
			node.connect(0)
		}
		synctest.Wait()
		for id, want := range map[string]int{"id-old": 28, "id-new": 31, "id-silent": 0} {
			if got := c.servers[0].Store().Snapshot().Node(id).Speaks(); got != want {
				t.Errorf("%s speaks %d, want %d", id, got, want)
			}
		}
	})
}

// TestRogueRegistersAgainAndAgain: the log grows by what a node may say, also
// when it opens a new stream each time.
func TestRogueRegistersAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		begin, heard := time.Now(), 0
		for range 400 {
			p := &pipe{ctx: t.Context(), up: make(chan *structs.SessionUp, 2), down: make(chan *structs.SessionDown, 16)}
			node := c.newNode("a").node
			node.Attributes = map[string]string{"a": strconv.Itoa(heard)}
			p.up <- &structs.SessionUp{Hello: &structs.NodeRegister{Node: node}}
			p.up <- &structs.SessionUp{Bye: true}
			if err := c.servers[0].ServeNode(t.Context(), "id-a", p); err != nil {
				t.Fatal(err)
			}
			heard++
		}
		if took := time.Since(begin); took < (400*registrationCost-reportBurst)/reportRate*time.Second {
			t.Errorf("%d registrations took %s", heard, took)
		}
	})
}

// TestWhatNodesSayIsPlain: nothing of a node reaches people that a terminal
// would obey.
func TestWhatNodesSayIsPlain(t *testing.T) {
	hostile := "a\x1b]0;owned\a\u009b31m\u202eb\u2066\x7f\xff"
	obeyed := func(text string) bool {
		return strings.ContainsAny(text, "\x1b\a\x7f\u009b\u202e\u2066") || strings.Contains(text, "\xff")
	}
	reason := structs.NewReason("x", "cause", hostile)
	given := map[string]string{hostile: hostile}
	node := structs.Node{
		Version: hostile, Attributes: given, Drivers: []string{"exec", hostile}, Topology: []string{hostile}, Storages: []string{hostile}, Data: []string{hostile},
		Devices: []structs.Device{{ID: "d", Model: hostile, Kind: hostile, Driver: hostile, Attrs: given, Health: reason}}, Faults: []structs.NodeFault{{Name: "f", Reason: reason}},
	}
	plainNode(&node)
	batch := structs.ReportBatch{
		Reports: []structs.AllocReport{{Step: hostile, Cause: reason}},
		Notes:   []structs.AllocNote{{Told: &structs.Told{Params: given, Seen: given}, Hold: &structs.HoldNote{Cause: reason}, Evicted: reason}},
	}
	plainBatch(&batch)
	d, r, n := node.Devices[0], batch.Reports[0], batch.Notes[0]
	texts := []string{node.Version, node.Drivers[1], node.Topology[0], node.Storages[0], node.Data[0], d.Model, d.Kind, d.Driver, r.Step}
	for _, table := range []map[string]string{node.Attributes, d.Attrs, d.Health.Params, node.Faults[0].Reason.Params, r.Cause.Params, n.Told.Params, n.Told.Seen, n.Hold.Cause.Params, n.Evicted.Params} {
		for name, value := range table {
			texts = append(texts, name, value)
		}
	}
	if len(texts) != 9+2*9 {
		t.Errorf("%d texts", len(texts))
	}
	for _, text := range texts {
		if obeyed(text) || !strings.HasPrefix(text, "a") && text != "cause" {
			t.Errorf("%q", text)
		}
	}
	if given[hostile] != hostile || reason.Params["cause"] != hostile {
		t.Error("what the caller has was changed")
	}
	if got := plain(strings.Repeat("é", reportTextMax)); len(got) > reportTextMax {
		t.Errorf("a text of %d bytes", len(got))
	}
	if got := plain("two\nlines\tand 训练 🚀"); got != "two\nlines\tand 训练 🚀" {
		t.Errorf("%q", got)
	}
}

// TestLongSourcesAreNotKept: a comment of a megabyte costs nobody memory after
// the submission.
func TestLongSourcesAreNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		for size, kept := range map[int]int{structs.SourceKeptMax: structs.SourceKeptMax, structs.SourceKeptMax + 1: 0, structs.SourceMax: 0} {
			job := testJob("job-"+strconv.Itoa(size), 1)
			job.Source = strings.Repeat("#", size)
			id := c.submit(0, job)
			view, ok := c.servers[0].Store().Snapshot().Job(id)
			if !ok || len(view.Job.Source) != kept {
				t.Errorf("%d bytes: %d are kept", size, len(view.Job.Source))
			}
		}
	})
}

// TestAllowancesAreForgotten keeps what is remembered of nodes that say nothing
// any more bounded.
func TestAllowancesAreForgotten(t *testing.T) {
	now := time.Unix(0, 0)
	a := &allowances{now: func() time.Time { return now }}
	for i := range 1000 {
		a.take("quiet-"+strconv.Itoa(i), 1)
	}
	now = now.Add(reportRefill)
	a.take("busy", reportBurst)
	now = now.Add(time.Second)
	a.take("new", 1)
	if len(a.mu.byNode) != 1002 {
		t.Errorf("%d are remembered before they are full again", len(a.mu.byNode))
	}
	now = now.Add(reportRefill - time.Second)
	a.take("newer", 1)
	if len(a.mu.byNode) != 3 {
		t.Errorf("%d are remembered of 1000 that are full again and 3 that are not", len(a.mu.byNode))
	}
}

// What some server does not know yet is taken from what nodes tell.
func TestNotesForOlderServers(t *testing.T) {
	for _, protocol := range []int{wire.ProtocolIdle - 1, wire.ProtocolIdle, wire.ProtocolTaskFaults - 1, wire.ProtocolTaskFaults} {
		batch := structs.ReportBatch{Notes: []structs.AllocNote{
			{Idle: &structs.IdleNote{Since: 1}, Progress: &structs.Progress{}},
			{Told: &structs.Told{Event: structs.EventDeviceFault}},
			{Told: &structs.Told{Event: structs.EventPatrolWell}},
		}}
		knownBatch(&batch, protocol)
		n := batch.Notes[0]
		if knows := protocol >= wire.ProtocolIdle; (n.Idle != nil) != knows || n.Progress == nil {
			t.Errorf("protocol %d: %+v", protocol, n)
		}
		if knows := protocol >= wire.ProtocolTaskFaults; (batch.Notes[1].Told != nil) != knows || batch.Notes[2].Told == nil {
			t.Errorf("protocol %d: %+v", protocol, batch.Notes[1:])
		}
		if needs := wire.Needs(structs.CommandAllocReports, &structs.AllocReports{Notes: batch.Notes}); needs > protocol {
			t.Errorf("protocol %d: it needs %d", protocol, needs)
		}
	}
}

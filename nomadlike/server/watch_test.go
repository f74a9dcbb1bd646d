package server

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// A watch that was not awake does not take that for silence.
func TestLifetime(t *testing.T) {
	begin := time.Unix(1000, 0)
	clock := lifetime{at: begin}
	at, want := begin, time.Duration(0)
	for _, step := range []struct{ passes, lived time.Duration }{
		{watchEvery, watchEvery}, {3 * watchEvery, 3 * watchEvery}, // a little late
		{30 * time.Second, 4 * watchEvery}, // asleep
		{-time.Second, 0},                  // a clock that goes backward
		{watchEvery, watchEvery},
	} {
		at, want = at.Add(step.passes), want+step.lived
		if got := clock.now(at); got != want {
			t.Errorf("after %s: %s lived, want %s", step.passes, got, want)
		}
	}
}

// A node on the machine of the server that judges it lives while its client opens, which
// may take longer than a node may be silent: its tasks go on. Another one is lost.
func TestOwnMachineLives(t *testing.T) {
	s := &scripted{t: t, store: state.New(), now: 1}
	for _, id := range []string{"s1", "n1"} {
		s.apply(structs.CommandNodeRegister, &structs.NodeRegister{Node: structs.Node{ID: id, Name: id, RPCAddr: id, Capacity: structs.Capacity{CPU: 1, Memory: 1}}})
	}
	for id, want := range map[string][]structs.NodeStatus{
		"s1": {structs.NodeDisconnected, structs.NodeLost}, "n1": {structs.NodeLost},
	} {
		peers := NewFakePeers()
		peers.Cut("s1", id, true)
		w := &watch{
			config: &Config{ID: "s1", Store: s.store, Peers: peers.For("s1")}, machine: NewLiveness(LivenessTimings{}, 1),
			answers: make(chan func(time.Duration) []LivenessEffect, 1),
		}
		node := &structs.Node{ID: id, Incarnation: 1, Status: structs.NodeReady, RegisterIndex: 1}
		w.machine.Know(0, node)
		var judged []structs.NodeStatus
		var lostAt time.Duration
		for now := time.Duration(0); now < 30*time.Second; now += watchEvery {
			for effects := w.machine.Tick(now); len(effects) > 0; effects = effects[1:] {
				switch effect := effects[0]; {
				case effect.Probe != nil:
					w.probe(t.Context(), effect.Probe)
					effects = append(effects, (<-w.answers)(now)...)
				case effect.Declare != nil:
					node.Status, judged = effect.Declare.Status, append(judged, effect.Declare.Status)
					w.machine.Know(now, node)
					if lostAt == 0 && node.Status == structs.NodeLost {
						lostAt = now
					}
				}
			}
		}
		if !slices.Equal(judged, want) || (id == "s1") != (lostAt >= 20*time.Second) {
			t.Errorf("%s was judged %v, lost after %s", id, judged, lostAt)
		}
	}
}

// However many nodes there are, one that sends its heartbeats at the interval that
// it was told, each some time late, is not even suspected.
func TestIntervalIsWithinPatience(t *testing.T) {
	timings := Timings{}.withDefaults()
	for _, nodes := range []int{1, manyNodes, manyNodes + 1, mostNodes, mostNodes + 1, 3 * mostNodes} {
		every := heartbeatEvery(timings.HeartbeatEvery, nodes)
		told := patience(timings.HeartbeatsEvery, nodes)
		if most := patience(timings.Liveness.SilentAfter, nodes); every+told+every/2 >= most {
			t.Errorf("%d nodes: heartbeats each %s, told each %s, suspected after %s", nodes, every, told, most)
		}
	}
}

// Nodes that register one after the other, ten thousand in all, are not
// suspected while their heartbeats become slower.
func TestManyNodesRegister(t *testing.T) {
	const (
		nodes   = 10_000
		perTick = 100 // two thousand a second
	)
	timings := Timings{}.withDefaults()
	machine := NewLiveness(timings.Liveness, 1)
	due := make([]time.Duration, nodes) // next heartbeat
	known, now := 0, time.Duration(0)
	for ; now < 15*time.Second; now += watchEvery {
		for range perTick {
			if known < nodes {
				machine.Know(now, &structs.Node{ID: fmt.Sprintf("%05d", known), Incarnation: 1, Status: structs.NodeReady, RegisterIndex: uint64(known + 1)})
				due[known] = now + heartbeatEvery(timings.HeartbeatEvery, known)
				known++
			}
		}
		every := heartbeatEvery(timings.HeartbeatEvery, known)
		for i := range known {
			if due[i] <= now {
				machine.Hear(now, structs.NodeHeartbeat{NodeID: fmt.Sprintf("%05d", i), Incarnation: 1, SilentFor: structs.Duration(now - due[i])})
				due[i] += every
			}
		}
		if effects := machine.Tick(now); len(effects) > 0 {
			t.Fatalf("at %s, with %d nodes: %+v", now, known, effects[0])
		}
	}
}

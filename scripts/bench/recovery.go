package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// What is measured of machines that vanish: rounds of one cluster for each run,
// and from when on a round is explained.
const (
	recoveryRounds  = 6
	recoverySlow    = 4 * time.Second
	recoveryServers = 3
	recoveryClients = 4
	recoveryRanks   = 2
)

// recovery measures, over and over in one cluster, the time from the moment at
// which a machine is cut off until every rank of the next attempt runs: a machine
// with a rank alone, and one together with the leader. A round that takes long
// is told with the events of its job.
func recovery(ctx context.Context, b *bench) error {
	w, err := b.cluster(ctx, recoveryServers, recoveryClients)
	if w != nil {
		defer w.stop()
	}
	if err != nil {
		return err
	}
	values := map[string][]float64{}
	for round := range b.runs * recoveryRounds {
		kind := "node"
		if round%2 == 1 {
			kind = "node_and_leader"
		}
		took, err := w.recover(ctx, fmt.Sprintf("recovery-%d", round), kind)
		if err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		fmt.Fprintf(os.Stderr, "round %d, %s: %.2f s\n", round, kind, took.Seconds())
		values[kind] = append(values[kind], took.Seconds())
	}
	report("recovery_node_s", "s", values["node"])
	report("recovery_node_and_leader_s", "s", values["node_and_leader"])
	return nil
}

// recover measures one round, and puts everything back.
func (w *world) recover(ctx context.Context, name, kind string) (time.Duration, error) {
	dir, err := w.stageDir(name)
	if err != nil {
		return 0, err
	}
	script := filepath.Join(dir, "rank.sh")
	text := strings.ReplaceAll(`cd DIR
if [ $NOMADLIKE_RANK = 1 ]; then echo $NOMADLIKE_NODE_NAME >node; fi
echo $EPOCHREALTIME >up.$NOMADLIKE_RANK.$NOMADLIKE_ATTEMPT.new
mv up.$NOMADLIKE_RANK.$NOMADLIKE_ATTEMPT.new up.$NOMADLIKE_ATTEMPT.$NOMADLIKE_RANK
sleep 1000
`, "DIR", dir)
	if err := os.WriteFile(script, []byte(text), 0o644); err != nil {
		return 0, err
	}
	job := trivialJob(name, "bash "+script)
	job.Nodes, job.Distributed.Mode, job.Placement.SpreadOrPack = recoveryRanks, structs.ModeNone, structs.Spread
	id, err := w.submit(ctx, job)
	if err != nil {
		return 0, err
	}
	up := func(attempt int) (last time.Time, err error) {
		for rank := range recoveryRanks {
			stamp := filepath.Join(dir, fmt.Sprintf("up.%d.%d", attempt, rank))
			what := fmt.Sprintf("rank %d of attempt %d", rank, attempt)
			if err := until(ctx, 90*time.Second, what, func() bool { _, err := os.Stat(stamp); return err == nil }); err != nil {
				return last, err
			}
			at, err := readStamp(stamp)
			if err != nil {
				return last, err
			}
			if at.After(last) {
				last = at
			}
		}
		return last, nil
	}
	if _, err := up(1); err != nil {
		return 0, err
	}
	node, err := os.ReadFile(filepath.Join(dir, "node"))
	if err != nil {
		return 0, err
	}
	cut := []string{strings.TrimSpace(string(node))}
	if kind == "node_and_leader" {
		leader, err := w.leader(ctx)
		if err != nil {
			return 0, err
		}
		cut = append(cut, leader)
	}
	time.Sleep(time.Second) // a gang that has settled
	lost := time.Now()
	for _, host := range cut {
		w.cut(host, true)
	}
	began, err := up(2)
	took := began.Sub(lost)
	for _, host := range cut {
		w.cut(host, false)
	}
	if err != nil || took > recoverySlow {
		w.explain(ctx, id, lost)
	}
	if err != nil {
		return 0, err
	}
	if _, err := w.client.StopJob(ctx, id, api.JobStopRequest{}); err != nil {
		return 0, err
	}
	if err := w.ready(ctx, recoveryClients); err != nil {
		return 0, err
	}
	return took, until(ctx, 60*time.Second, "a cluster that is whole", func() bool { _, err := w.leader(ctx); return err == nil })
}

// cut takes a machine off the network, or puts it back, as a switch does that
// drops everything: the machine's own link stays up. A link that was down is a
// fault of its node for half a minute, and a node with a fault is no free capacity.
func (w *world) cut(name string, off bool) {
	to := []string{"link", "set", w.agents[name].veth, "master", w.bridge}
	if off {
		to = []string{"link", "set", w.agents[name].veth, "nomaster"}
	}
	_ = ip(to...) // without namespaces nothing is cut, and the round says so
}

// explain lists the events of a job since a moment.
func (w *world) explain(ctx context.Context, id string, since time.Time) {
	events, _, err := w.client.JobEvents(ctx, id, nil)
	if err != nil {
		return
	}
	for i := range events.Events {
		e := &events.Events[i]
		fmt.Fprintf(os.Stderr, "  %+7.2f s  %s %v\n", e.Time.Time().Sub(since).Seconds(), e.ID, e.Params)
	}
	nodes, _, err := w.client.Nodes(ctx, &api.Query{Stale: true})
	if err != nil {
		return
	}
	for i := range nodes.Nodes {
		told, err := w.client.NodeEvents(ctx, nodes.Nodes[i].ID)
		if err != nil {
			continue
		}
		for i := range told.Events {
			if e := &told.Events[i]; e.Time.Time().After(since) {
				fmt.Fprintf(os.Stderr, "  %+7.2f s  %s %v\n", e.Time.Time().Sub(since).Seconds(), e.ID, e.Params)
			}
		}
	}
}

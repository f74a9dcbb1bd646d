package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// plant is a known defect that a run must find: it shows that the nemesis sees.
type plant struct {
	name   string
	text   string
	faults string // that bring it to light
	module string // another version of a module, path@version
	edits  []edit
	finds  []string // one of these invariants must be among the findings
}

func plants() []plant {
	return []plant{
		{
			name: "log-store-0.4.0", text: "the log store of 0.4.0 loses its index when a deposed leader drops entries, and nobody repairs it",
			faults: "cut-leaders-in-turn", module: "github.com/hashicorp/raft-wal@v0.4.0", finds: []string{"agent", "recovery"},
			edits: []edit{{"nomadlike/consensus/storage.go", "if err := repairLog(config.Dir, meta.record, mark.at(), config.Log); err != nil {", "if err := error(nil); err != nil {"}},
		},
		{
			name: "back-off-is-a-hang", text: "the watchdog takes raft's back-off for a hang, and a server that comes back ends the leader",
			faults: "follower-away", finds: []string{"agent"},
			edits: []edit{
				{"nomadlike/consensus/gate.go", "for !g.isCut.Load() {\n\t\tserves :=", "for false {\n\t\tserves :="},
				{"nomadlike/consensus/health.go", "now.Sub(f.lastSend) > t.Wedge+backOffMax", "now.Sub(f.lastSend) > t.Wedge"},
			},
		},
		{
			name: "cursor-of-index", text: "a watcher that was cut between two events of one index loses the rest of them",
			faults: "kill-client-agent", finds: []string{"I20"},
			edits: []edit{{"agent/httpapi/events.go", "\t\treturn cursor\n", "\t\treturn structs.CursorAfter(cursor.Index)\n"}},
		},
		{
			name: "local-reads", text: "a server reads its own state without asking the leader",
			faults: "kill-follower", finds: []string{"I21", "I4"},
			edits: []edit{{"nomadlike/server/propose.go", "\t\tindex, err := p.readOnce(ctx)\n", "\t\tindex, err := uint64(0), error(nil)\n"}},
		},
		{
			name: "key-forgotten", text: "a repeated submission is a new one",
			faults: "kill-leader,cut-leader,one-way-from-leader", finds: []string{"I5"},
			edits: []edit{{"nomadlike/state/apply_job.go", "row, ok := get[*keyRow](tx, tableIdempotency, []byte(idempotencyKey(job.User, job.IdempotencyKey)))\n\tif !ok {\n\t\treturn", "row, ok := get[*keyRow](tx, tableIdempotency, []byte(idempotencyKey(job.User, job.IdempotencyKey)))\n\tif ok = false; !ok {\n\t\treturn"}},
		},
		{
			name: "quota-forgotten", text: "nobody looks at quotas",
			faults: "kill-client-agent", finds: []string{"I8"},
			edits: []edit{{"nomadlike/structs/quota.go", "func QuotaProblem(project *Project, usage *ProjectUsage, more QuotaUsage) *Reason {\n\tif project == nil {", "func QuotaProblem(project *Project, usage *ProjectUsage, more QuotaUsage) *Reason {\n\tif project = nil; project == nil {"}},
		},
		{
			name: "wiped-node-runs-on", text: "an agent whose disk was lost does not look for the tasks that it left",
			faults: "client-wiped", finds: []string{"I12", "I3"},
			edits: []edit{{"plugins/exec/driver.go", "lost, err := d.orphans.list(recorded)", "lost, err := []driver.Handle(nil), error(nil)"}},
		},
		{
			name: "full-leader-stays", text: "a leader without room on its disk keeps the lead and refuses every write",
			faults: "full-disk-of-leader", finds: []string{"writes"},
			edits: []edit{{"nomadlike/consensus/handover.go", "if n.diskFull.Load() {\n\t\t\tn.handOver()", "if false {\n\t\t\tn.handOver()"}},
		},
		{
			name: "removed-server-returns", text: "autopilot takes a server that an administrator removed for a new one",
			faults: "server-replaced", finds: []string{"I28"},
			edits: []edit{
				{
					"nomadlike/structs/token.go", "return c != nil && slices.ContainsFunc(c.Removed, func(s RemovedServer) bool { return s.ID == id })",
					"return c != nil && id == \"\" && slices.ContainsFunc(c.Removed, func(s RemovedServer) bool { return s.ID == id })",
				},
				{"nomadlike/state/apply_server.go", "if known.IsRemoved(body.ID) != body.Back {", "if body.Back {"},
			},
		},
		{
			name: "quarantine-lost", text: "what may still run on a lost node counts as ended, so a strict job begins again beside itself",
			faults: "cut-client", finds: []string{"I3", "I6/I7"},
			edits: []edit{{"nomadlike/state/apply_node.go", "after.Status, after.Step, after.Quarantined = structs.AllocLost, \"\", true", "after.Status, after.Step, after.Quarantined = structs.AllocLost, \"\", false"}},
		},
		{
			name: "lease-ignored", text: "a node that is cut off lets strict jobs run after its lease has ended",
			faults: "cut-client-past-lease", finds: []string{"I3"},
			edits: []edit{
				{"nomadlike/client/run/lease.go", "if lease.Remaining(e.boottime()) > 0 {", "if lease.TTL >= 0 {"},
				{"nomadlike/client/run/lease.go", "leaseRecord{TTL: lease.TTL, From: lease.From}", "leaseRecord{TTL: 0, From: lease.From}"},
			},
		},
		{
			name: "lapsed-stays-out", text: "a node whose certificate ended while it was away is never let in again",
			faults: "client-past-certificate", finds: []string{"recovery", "agent"},
			edits: []edit{{
				"agent/certificate.go", "renewed, err := c.renewLapsed(ctx, held, csr)",
				"chain, err := c.ask(ctx, csr)\n\trenewed := &api.Renewed{Certificate: string(chain)}",
			}},
		},
		{
			name: "attempts-used-again", text: "a state that was brought back counts attempts on from where it was",
			faults: "restore-after-loss", finds: []string{"I2"},
			edits: []edit{{"nomadlike/state/revive.go", "after.AttemptsFrom = revival.AttemptsFrom(max(subjob.Attempt, subjob.AttemptsFrom))", "after.AttemptsFrom = subjob.AttemptsFrom"}},
		},
	}
}

// plantTries is how many seeds a plant gets.
const plantTries = 3

// findPlants builds each planted defect in and demands that it is found.
func findPlants(ctx context.Context, o options) int {
	var missed []string
	count := 0
	for _, p := range plants() {
		if o.plant != "all" && o.plant != p.name {
			continue
		}
		count++
		ok, err := findPlant(ctx, o, &p)
		if err != nil {
			fmt.Fprintf(os.Stderr, "nemesis: plant %s: %v\n", p.name, err)
			return exitUnable
		}
		if !ok {
			missed = append(missed, p.name)
		}
	}
	if count == 0 {
		fmt.Fprintf(os.Stderr, "nemesis: no plant is called %s; -list names them\n", o.plant)
		return exitUnable
	}
	fmt.Printf("%d of %d planted defects found\n", count-len(missed), count)
	if len(missed) > 0 {
		fmt.Printf("not found: %s\n", strings.Join(missed, ", "))
		return exitUnfound
	}
	return exitHeld
}

func findPlant(ctx context.Context, o options, p *plant) (bool, error) {
	binary, err := build(ctx, p)
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(filepath.Dir(binary))
	o.only, o.sought = p.faults, p.finds
	for try := range plantTries {
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		o.seed += uint64(try)
		r, err := attack(ctx, o, binary)
		if err != nil {
			// A cluster that does not even form is a finding of its own.
			say("plant %s: %v", p.name, err)
			continue
		}
		for _, f := range r.findings {
			for _, invariant := range p.finds {
				if f.Invariant == invariant {
					say("plant %s: found with seed %d as %s: %s", p.name, o.seed, f.Invariant, f.Text)
					_ = os.RemoveAll(r.dir)
					return true, nil
				}
			}
		}
		r.print(os.Stdout)
		_ = os.RemoveAll(r.dir)
	}
	return false, nil
}

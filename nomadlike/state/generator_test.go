package state

import (
	"fmt"

	"nomadlike/nomadlike/placement/feasible"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// chance draws the choices of a random history: from rapid, which shrinks
// them, or from the bytes of a fuzzer.
type chance interface {
	Intn(n int) int
}

// generator makes commands that fit the state, and some that do not.
type generator struct {
	chance chance
	calm   bool // nodes seldom come and go, so that gangs meet each other
	closes bool // there are windows of maintenance
	now    structs.UnixNano
	jobs   int
}

func encode(kind structs.CommandKind, now structs.UnixNano, body any) []byte {
	data, err := wire.EncodeCommand(kind, now, "tester", body)
	if err != nil {
		panic(err)
	}
	return data
}

func testNode(i int) structs.Node {
	node := structs.Node{
		ID: fmt.Sprintf("node-%d", i), Name: fmt.Sprintf("n%d", i), Addr: "10.0.0.1", RPCAddr: "10.0.0.1:4646",
		Version: "0.1.0", Incarnation: 1, Drivers: []string{"exec"},
		Capacity: structs.Capacity{CPU: 4, Memory: 8 << 30, PortMin: 20000, PortMax: 20003},
	}
	for d := range 2 {
		node.Devices = append(node.Devices, structs.Device{
			ID: fmt.Sprintf("gpu-%d-%d", i, d), Kind: "nvidia/gpu", Model: "A800", Memory: 80 << 30, Healthy: true,
		})
	}
	return node
}

func testJob(name string, nodes int) *structs.Job {
	return &structs.Job{
		ID: "job-" + name, Name: name, Project: "default", User: "ann", Type: structs.JobTypeTraining,
		Priority: structs.PriorityNormal, Nodes: nodes,
		Distributed: structs.Distributed{Mode: structs.ModeSingle},
		Resources:   []structs.Resources{{CPU: 1, Memory: 1 << 30}},
		Task:        structs.Task{Driver: "exec", Command: "true"},
		StopGrace:   structs.Duration(30e9), SubmittedAt: 1,
	}
}

func (w *generator) pick(options ...int) int { return options[w.chance.Intn(len(options))] }
func (w *generator) maybe(oneIn int) bool    { return w.chance.Intn(oneIn) == 0 }

func pickOf[T any](w *generator, items []T) (item T, ok bool) {
	if len(items) == 0 {
		return item, false
	}
	return items[w.chance.Intn(len(items))], true
}

// next returns a command. The snapshot is the state that it will meet, mostly.
func (w *generator) next(s *Snapshot) []byte {
	w.now += structs.UnixNano(1 + w.chance.Intn(3e9))
	if w.closes && w.maybe(8) {
		return w.maintenance()
	}
	if w.calm && !w.maybe(8) {
		switch w.chance.Intn(11) {
		case 10:
			return w.forecasts(s)
		case 0:
			return w.submit(s)
		case 1, 2:
			return w.plan(s)
		case 3, 4, 5:
			return w.nominate(s)
		case 6:
			return w.register(s)
		default:
			return w.reports(s)
		}
	}
	switch w.chance.Intn(21) {
	case 18, 19:
		return w.reports(s)
	case 16, 17:
		return w.nominate(s)
	case 14:
		return w.bounds()
	case 15:
		return w.queueCommand(s)
	case 0, 1:
		return w.submit(s)
	case 2, 3, 4:
		return w.plan(s)
	case 5, 6, 7, 8:
		return w.reports(s)
	case 9:
		return w.register(s)
	case 10:
		return w.nodeStatus(s)
	case 11:
		return w.eligibility()
	case 12:
		return w.jobCommand(s)
	case 20:
		return w.control(s)
	default:
		return w.tokenCommand()
	}
}

func (w *generator) submit(s *Snapshot) []byte {
	job := testJob(fmt.Sprintf("j%d", w.chance.Intn(6)), w.pick(1, 1, 1, 2, 3))
	w.jobs++
	job.ID = fmt.Sprintf("job-%d", w.jobs)
	if w.maybe(10) { // taken; the ids of deleted jobs never come again
		if id := fmt.Sprintf("job-%d", w.chance.Intn(w.jobs)+1); s.Subjob(id, 0) != nil {
			job.ID = id
		}
	}
	if w.maybe(3) {
		job.IdempotencyKey = fmt.Sprintf("key-%d", w.chance.Intn(4))
	}
	if w.maybe(4) {
		count := w.pick(1, 2, 5)
		job.Batch = &structs.Batch{Count: count, Parallel: count / 4}
	}
	switch w.chance.Intn(4) {
	case 0:
		job.Distributed.Mode = structs.ModePyTorch
	case 1:
		job.Distributed.Mode = structs.ModeMPI
	}
	if w.maybe(3) {
		job.Resources[0].Devices = []structs.DeviceRequest{{Kind: "nvidia/gpu", Count: w.pick(1, 2)}}
	}
	job.Resources[0].CPU = []float64{0.1, 0.3, 1, 2.5}[w.chance.Intn(4)]
	if w.maybe(2) {
		job.Restart = &structs.Restart{MaxRestarts: w.chance.Intn(3), Delay: structs.Duration(w.pick(0, 5e9))}
	}
	if w.maybe(20) {
		job.Nodes = w.pick(-1, 0, 1<<40)
	}
	if job.Nodes < 5 && w.maybe(4) {
		job.VIP = &structs.VIP{}
		for i := range job.Nodes {
			job.VIP.Machines = append(job.VIP.Machines, structs.VIPMachine{Node: fmt.Sprintf("n%d", (i+w.jobs)%4), Busy: []string{"", structs.BusyWait, structs.BusyAsk, structs.BusyKill}[w.chance.Intn(4)]})
		}
		if w.maybe(2) {
			job.VIP.Ask = &structs.VIPAsk{For: structs.Duration(w.pick(1, 60e9)), Silence: []string{structs.BusyWait, structs.BusyKill}[w.chance.Intn(2)]}
			job.KillsLast = true
		}
	} else if w.maybe(3) {
		job.Checkpoint = &structs.Checkpoint{
			MaxResumes: 1, Signal: "SIGUSR1", Grace: 60e9,
			Elastic: &structs.Elastic{MinNodes: 1, AllowResize: w.maybe(2)},
		}
	}
	job.Preemptible = w.maybe(2)
	job.Project = w.project()
	job.Priority = w.priority()
	if w.maybe(5) {
		job.Placement.Pool = []string{"p0", "p1", "p2", structs.PoolDefault}[w.chance.Intn(4)]
	}
	if other := fmt.Sprintf("job-%d", w.chance.Intn(w.jobs)+1); w.maybe(8) && s.Subjob(other, 0) != nil {
		job.After = []structs.After{{Job: "other", ID: other, When: []string{structs.UntilSucceeded, structs.UntilFailed, structs.UntilEnded, structs.UntilStarted}[w.chance.Intn(4)]}}
	}
	if w.maybe(12) {
		job.BeginAt, job.DeadlineAt = w.now.Add(5e9), w.now.Add(60e9)
	}
	if w.maybe(3) {
		job.TimeLimit = structs.Duration(w.pick(1e9, 5e9, 60e9))
	}
	return encode(structs.CommandJobSubmit, w.now, &structs.JobSubmit{Job: job})
}

func (w *generator) project() string { return []string{"default", "default", "lab"}[w.chance.Intn(3)] }

func (w *generator) priority() structs.Priority {
	return []structs.Priority{structs.PriorityNormal, structs.PriorityNormal, structs.PriorityUrgent, structs.PriorityCritical}[w.chance.Intn(4)]
}

// bounds changes pools and projects.
func (w *generator) bounds() []byte {
	name := fmt.Sprintf("p%d", w.chance.Intn(3))
	switch w.chance.Intn(6) {
	case 0, 1:
		pool := structs.Pool{Name: name, Dedicated: w.maybe(4)}
		for i := range 4 {
			if w.maybe(3) {
				pool.Nodes = append(pool.Nodes, fmt.Sprintf("n%d", i))
			}
		}
		if w.maybe(10) {
			pool.Order = "nonsense"
		}
		return encode(structs.CommandPoolPut, w.now, &structs.PoolPut{Pool: pool})
	case 2:
		return encode(structs.CommandPoolDelete, w.now, &structs.PoolDelete{Name: name})
	case 3:
		return encode(structs.CommandProjectDelete, w.now, &structs.ProjectDelete{Name: w.project()})
	default:
		project := structs.Project{Name: w.project()}
		if w.maybe(2) {
			limit := w.chance.Intn(4)
			project.UrgentLimit = &limit
		}
		for _, kind := range []string{"nvidia/gpu", structs.QuotaCPU} {
			if w.maybe(2) {
				most := w.pick(0, 1, 2, 4)
				project.Quotas = append(project.Quotas, structs.Quota{Kind: kind, Guaranteed: w.pick(0, 1, 2), Maximum: &most})
			}
		}
		if w.maybe(10) {
			project.Weight = -1
		}
		return encode(structs.CommandProjectPut, w.now, &structs.ProjectPut{Project: project})
	}
}

// maintenance makes, begins and ends windows of maintenance, or tries to.
func (w *generator) maintenance() []byte {
	id := fmt.Sprintf("w%d", w.chance.Intn(3))
	switch w.chance.Intn(6) {
	case 0:
		return encode(structs.CommandClusterInit, w.now, &structs.ClusterInit{Cluster: structs.Cluster{ID: "c"}})
	case 1, 2, 3:
		steps := []structs.MaintenanceStepped{structs.MaintenanceBegin, structs.MaintenanceOver, structs.MaintenanceRemove, "nonsense"}
		return encode(structs.CommandMaintenanceStep, w.now, &structs.MaintenanceStep{ID: id, Step: steps[w.pick(0, 0, 0, 1, 1, 2, 2, 3)]})
	}
	start := w.now + structs.UnixNano(w.pick(-5e9, 0, 1e9, 10e9))
	window := structs.Maintenance{ID: id, Start: start, End: start + structs.UnixNano(w.pick(-1, 5e9, 60e9)), KeepRunning: w.maybe(3)}
	switch w.chance.Intn(4) {
	case 0:
		window.All = w.maybe(4)
	case 1:
		window.Pool = fmt.Sprintf("p%d", w.chance.Intn(3))
	default:
		window.Nodes = []string{fmt.Sprintf("n%d", w.chance.Intn(4)), "n1"}
	}
	return encode(structs.CommandMaintenancePut, w.now, &structs.MaintenancePut{Maintenance: window})
}

// anyJob returns the id of a job, mostly of one that exists.
func (w *generator) anyJob(s *Snapshot) string {
	var ids []string
	for view := range s.Jobs() {
		ids = append(ids, view.Job.ID)
	}
	if id, ok := pickOf(w, ids); ok {
		return id
	}
	return "job-unknown"
}

// annotation changes the tags and the note of a job, now and then to what is refused.
func (w *generator) annotation(id string) []byte {
	tags := []string{"ablation", "paper-3", "消融", ""}
	body := &structs.JobAnnotate{JobID: id, Add: []string{tags[w.chance.Intn(4)]}}
	if w.maybe(2) {
		body.Remove = []string{tags[w.chance.Intn(3)]}
	}
	if w.maybe(2) {
		note := []string{"", "diverged at step 40k", "学习率太高", "\xff"}[w.chance.Intn(4)]
		body.Note = &note
	}
	return encode(structs.CommandJobAnnotate, w.now, body)
}

// consent answers for a gang, mostly what was asked.
func (w *generator) consent(s *Snapshot, id string) []byte {
	body := &structs.JobConsent{JobID: id, Answer: []structs.ConsentAnswer{structs.ConsentYes, structs.ConsentYes, structs.ConsentNo, ""}[w.chance.Intn(4)]}
	for subjob := range s.Nominated() {
		if c, ok := pickOf(w, subjob.Consents); ok {
			body.JobID, body.Subjob, body.Of = subjob.JobID, subjob.Index, c.Of
		}
	}
	return encode(structs.CommandJobConsent, w.now, body)
}

// queueCommand changes the queue, a time limit, or what people write on a job.
func (w *generator) queueCommand(s *Snapshot) []byte {
	id := w.anyJob(s)
	if w.maybe(6) {
		return w.consent(s, id)
	}
	if w.maybe(3) {
		return w.forecasts(s)
	}
	if w.maybe(3) {
		if w.now%2 == 0 { // as random as a draw, and leaves the draws after it as they were
			return encode(structs.CommandJobParallel, w.now, &structs.JobParallel{JobID: id, Parallel: int(w.now/2%5) - 1})
		}
		return encode(structs.CommandJobTimeLimit, w.now, &structs.JobTimeLimit{JobID: id, TimeLimit: structs.Duration(w.pick(0, -1, 1e9, 20e9))})
	}
	body := &structs.QueueMove{JobID: id, Last: w.maybe(4)}
	switch {
	case w.maybe(2):
		body.Before = w.anyJob(s)
	case body.Last:
		return w.annotation(id)
	}
	return encode(structs.CommandQueueMove, w.now, body)
}

// control pauses, continues, throttles or finishes a job, or tries to.
func (w *generator) control(s *Snapshot) []byte {
	id := w.anyJob(s)
	var running, paused []string
	for view := range s.Jobs() {
		if state := view.Status.State; state == structs.JobRunning || state == structs.JobPaused {
			running = append(running, view.Job.ID)
		}
		if view.Status.Counts.Paused > 0 {
			paused = append(paused, view.Job.ID)
		}
	}
	if one, ok := pickOf(w, running); ok && !w.maybe(4) {
		id = one
	}
	var subjob *int
	if w.maybe(4) {
		index := w.chance.Intn(3)
		subjob = &index
	}
	if w.maybe(5) {
		return encode(structs.CommandJobFinish, w.now, &structs.JobFinish{JobID: id, Subjob: subjob, Reason: "enough"})
	}
	body := &structs.JobControl{JobID: id, Subjob: subjob}
	switch w.chance.Intn(5) {
	case 0, 1:
		body.Paused, body.Continue = true, w.maybe(10)
	case 2, 3:
		body.Continue = true
		if one, ok := pickOf(w, paused); ok {
			body.JobID, body.Subjob = one, nil
		}
	}
	body.Busy, body.Idle = structs.Duration(w.pick(0, 1e6, 1e9)), structs.Duration(w.pick(0, -1, 1e9))
	return encode(structs.CommandJobControl, w.now, body)
}

// nominate plans a gang that ends what stands in its way, mostly all of it, or
// changes its own size.
func (w *generator) nominate(s *Snapshot) []byte {
	var gangs []structs.GangPlan
	for job, subjob := range s.Queue() {
		gang := structs.GangPlan{JobID: job.ID, Subjob: subjob.Index, Attempt: subjob.NextAttempt(), Nominate: job.VIP != nil && w.maybe(2)}
		w.clear(s, job, &gang, job.Nodes)
		gangs = append(gangs, gang)
	}
	for attempt := range s.LiveAttempts() {
		if view, _ := s.Job(attempt.JobID); view.Job.Checkpoint != nil {
			gang := structs.GangPlan{JobID: attempt.JobID, Subjob: attempt.Subjob, Attempt: attempt.Number + 1}
			w.clear(s, view.Job, &gang, 1+w.chance.Intn(view.Job.Nodes))
			gang.Victims = []structs.AttemptKey{{JobID: attempt.JobID, Subjob: attempt.Subjob, Number: attempt.Number}}
			gangs = append(gangs, gang)
		}
	}
	plan := &structs.Plan{SnapshotIndex: s.Index()}
	for range 2 {
		if gang, ok := pickOf(w, gangs); ok {
			plan.Gangs = append(plan.Gangs, gang)
		}
	}
	return encode(structs.CommandPlan, w.now, plan)
}

// clear chooses nodes for a gang, and what is on them as its victims.
func (w *generator) clear(s *Snapshot, job *structs.Job, gang *structs.GangPlan, size int) {
	start := w.chance.Intn(4)
	for i := range min(size, 4) {
		node := s.Node(fmt.Sprintf("node-%d", (start+i)%4))
		if job.VIP != nil {
			named := s.NodesNamed(job.VIP.Machines[i].Node)
			if node = nil; len(named) > 0 {
				node = named[0]
			}
		}
		if node == nil {
			continue
		}
		devices, _ := feasible.ChooseDevices(node, nil, job.Resources[0].Devices)
		gang.Placements = append(gang.Placements, structs.RankPlacement{NodeID: node.ID, Devices: devices})
		for alloc := range s.Occupants(node.ID) {
			if !w.maybe(8) {
				gang.Victims = append(gang.Victims, structs.AttemptKey{JobID: alloc.JobID, Subjob: alloc.Subjob, Number: alloc.Attempt})
			}
		}
	}
}

// forecasts says when subjobs begin, sometimes what cannot be.
func (w *generator) forecasts(s *Snapshot) []byte {
	body := &structs.Forecasts{}
	for job, subjob := range s.Queue() {
		given := structs.Forecast{
			JobID: job.ID, Subjob: subjob.Index, Attempt: subjob.NextAttempt(), Position: len(body.Forecasts) + 1,
			Point: w.now + 5, P50: w.now + structs.UnixNano(w.pick(1, 2)), P90: w.now + 2, Features: []float64{0.5}, Withdrawn: w.maybe(10),
		}
		if w.maybe(10) {
			given.P90 = 0
		}
		if w.maybe(10) {
			given.Attempt++
		}
		body.Forecasts = append(body.Forecasts, given)
	}
	return encode(structs.CommandForecasts, w.now, body)
}

// plan places what fits, by first fit over a random beginning, and sometimes
// nonsense.
func (w *generator) plan(s *Snapshot) []byte {
	plan := &structs.Plan{SnapshotIndex: s.Index()}
	for job, subjob := range s.Queue() {
		if len(plan.Gangs) == 4 {
			break
		}
		gang := structs.GangPlan{JobID: job.ID, Subjob: subjob.Index, Attempt: subjob.NextAttempt()}
		start := w.chance.Intn(4)
		for i := 0; i < 4 && len(gang.Placements) < job.Nodes; i++ {
			node := s.Node(fmt.Sprintf("node-%d", (start+i)%4))
			if node == nil {
				continue
			}
			usage := s.Usage(node.ID)
			rank := len(gang.Placements)
			ports, portsOK := feasible.ChoosePorts(node, usage, job.PortRequests(job.Resources[0], rank), uint64(w.chance.Intn(4)))
			devices, devicesOK := feasible.ChooseDevices(node, usage, job.Resources[0].Devices)
			placement := structs.RankPlacement{NodeID: node.ID, Ports: ports, Devices: devices}
			if feasible.NodeProblem(job, node) != nil && !w.maybe(8) {
				continue
			}
			fits := feasible.PlacementProblem(job, node, usage, job.Resources[0], rank, &placement) == nil
			if portsOK && devicesOK && fits || w.maybe(8) {
				gang.Placements = append(gang.Placements, placement)
			}
		}
		if w.maybe(20) {
			gang.Attempt = uint64(w.chance.Intn(4))
		}
		plan.Gangs = append(plan.Gangs, gang)
		if w.maybe(3) {
			update := structs.WaitUpdate{
				JobID: job.ID, Subjob: subjob.Index,
				Wait: &structs.WaitReason{Reason: structs.Reason{ID: "scheduler.waits"}, Position: 1},
			}
			if w.maybe(2) {
				update.NoPassingAt = w.now
			}
			if w.maybe(4) {
				update.Wait = nil
			}
			plan.Waits = append(plan.Waits, update)
		}
	}
	return encode(structs.CommandPlan, w.now, plan)
}

func (w *generator) reports(s *Snapshot) []byte {
	var live, all []*structs.Allocation
	for alloc := range s.Allocs() {
		all = append(all, alloc)
		if alloc.OccupiesNode() {
			live = append(live, alloc)
		}
	}
	body := &structs.AllocReports{}
	for range 1 + w.chance.Intn(3) {
		alloc, ok := pickOf(w, live)
		if !ok || w.maybe(10) {
			if alloc, ok = pickOf(w, all); !ok {
				break
			}
		}
		body.NodeID = alloc.NodeID
		if w.maybe(20) {
			body.NodeID = fmt.Sprintf("node-%d", w.chance.Intn(4))
		}
		body.Reports = append(body.Reports, w.report(alloc))
	}
	return encode(structs.CommandAllocReports, w.now, body)
}

func (w *generator) report(alloc *structs.Allocation) structs.AllocReport {
	report := structs.AllocReport{AllocID: alloc.ID, Attempt: alloc.Attempt}
	forward := map[structs.AllocStatus]structs.AllocStatus{
		structs.AllocPending: structs.AllocPreparing, structs.AllocPreparing: structs.AllocPrepared,
		structs.AllocPrepared: structs.AllocRunning, structs.AllocRunning: structs.AllocComplete,
	}
	all := []structs.AllocStatus{
		structs.AllocPending, structs.AllocPreparing, structs.AllocPrepared, structs.AllocRunning,
		structs.AllocComplete, structs.AllocFailed, structs.AllocKilled, structs.AllocLost, "nonsense",
	}
	report.Status = forward[alloc.Status]
	switch {
	case alloc.Desired == structs.DesiredStop && w.maybe(2):
		report.Status = structs.AllocKilled
	case w.maybe(6) || report.Status == "":
		report.Status = all[w.chance.Intn(len(all))]
	}
	if alloc.Control != nil && alloc.Status == structs.AllocRunning && (!obeys(alloc) || alloc.Control.Paused) && !w.maybe(6) {
		report.Status = structs.AllocRunning
		report.Control = &structs.ControlAnswer{Seq: alloc.Control.Seq}
		if w.maybe(5) {
			report.Control.Seq--
		}
		if w.maybe(3) {
			report.Control.Failed = structs.NewReason("client.control_failed", "cause", "no freezer")
		}
	}
	if report.Status == structs.AllocFailed {
		report.ExitCode, report.Infra = w.pick(1, 2, 137), w.maybe(3)
	}
	if w.maybe(25) {
		report.Attempt = uint64(w.chance.Intn(3))
	}
	return report
}

func (w *generator) register(s *Snapshot) []byte {
	node := testNode(w.chance.Intn(4))
	if known := s.Node(node.ID); known != nil {
		node.Incarnation = known.Incarnation + uint64(w.pick(0, 1, 1))
		if w.maybe(10) {
			node.Incarnation--
		}
	}
	if w.maybe(10) {
		node.Capacity.CPU = 1
	}
	if w.maybe(10) {
		node.Devices[0].Healthy = false
	}
	body := &structs.NodeRegister{Node: node}
	for alloc := range s.Occupants(node.ID) {
		if w.maybe(3) {
			body.Inventory = append(body.Inventory, structs.InventoryItem{AllocID: alloc.ID, Attempt: alloc.Attempt})
		}
	}
	return encode(structs.CommandNodeRegister, w.now, body)
}

func (w *generator) nodeStatus(s *Snapshot) []byte {
	body := &structs.NodeStatusChange{NodeID: fmt.Sprintf("node-%d", w.chance.Intn(5)), Incarnation: 1}
	if node := s.Node(body.NodeID); node != nil && !w.maybe(10) {
		body.Incarnation = node.Incarnation
	}
	body.Status = []structs.NodeStatus{
		structs.NodeReady, structs.NodeDisconnected, structs.NodeLost, structs.NodeLost,
		structs.NodeLeft, "nonsense",
	}[w.chance.Intn(6)]
	return encode(structs.CommandNodeStatus, w.now, body)
}

func (w *generator) eligibility() []byte {
	body := &structs.NodeEligibilityChange{
		NodeID:      fmt.Sprintf("node-%d", w.chance.Intn(4)),
		Eligibility: []structs.Eligibility{structs.NodeEligible, structs.NodeEligible, structs.NodeCordoned, structs.NodeDraining, "nonsense"}[w.chance.Intn(5)],
	}
	if w.maybe(2) {
		body.DrainDeadline = w.now + structs.UnixNano(w.pick(-5, 5))
	}
	return encode(structs.CommandNodeEligibility, w.now, body)
}

func (w *generator) jobCommand(s *Snapshot) []byte {
	id := w.anyJob(s)
	switch w.chance.Intn(4) {
	case 0:
		body := &structs.JobStop{JobID: id, Reason: "enough"}
		if w.maybe(2) {
			subjob := w.chance.Intn(3)
			body.Subjob = &subjob
		}
		return encode(structs.CommandJobStop, w.now, body)
	case 1:
		return encode(structs.CommandJobDelete, w.now, &structs.JobDelete{JobID: id})
	case 2:
		return encode(structs.CommandJobPriority, w.now, &structs.JobPriority{
			JobID:    id,
			Priority: []structs.Priority{structs.PriorityNormal, structs.PriorityUrgent, structs.PriorityCritical, "nonsense"}[w.chance.Intn(4)],
		})
	default:
		body := &structs.JobLimits{Expired: s.DueAttempts(w.now, 3)}
		for attempt := range s.LiveAttempts() {
			if w.maybe(3) {
				body.Expired = append(body.Expired, structs.AttemptKey{JobID: attempt.JobID, Subjob: attempt.Subjob, Number: attempt.Number})
			}
		}
		return encode(structs.CommandJobLimits, w.now, body)
	}
}

func (w *generator) tokenCommand() []byte {
	hash := make([]byte, 32)
	hash[0] = byte(w.chance.Intn(3))
	id := fmt.Sprintf("token-%d", w.chance.Intn(3))
	switch w.chance.Intn(7) {
	case 0:
		return encode(structs.CommandTokenPut, w.now, &structs.TokenPut{Token: structs.Token{ID: id, Hash: hash, Role: "user"}})
	case 1:
		return encode(structs.CommandTokenDelete, w.now, &structs.TokenDelete{ID: id})
	case 2:
		return encode(structs.CommandTokenBootstrap, w.now, &structs.TokenBootstrap{
			SetupHash: make([]byte, 32),
			Token:     structs.Token{ID: id, Hash: hash, Role: "admin"},
		})
	case 3:
		return encode(structs.CommandJoinTokenPut, w.now, &structs.JoinTokenPut{Token: structs.JoinToken{
			ID: id, Hash: hash,
			Role: "client", UsesLeft: w.pick(-1, 0, 1), ExpiresAt: w.now + 1e12,
		}})
	case 4:
		return encode(structs.CommandJoinTokenConsume, w.now, &structs.JoinTokenConsume{ID: id, Hash: hash, Role: "client", AgentID: "a"})
	case 5:
		return encode(structs.CommandJoinTokenDelete, w.now, &structs.JoinTokenDelete{ID: id})
	default:
		switch w.now % 4 {
		case 1:
			return encode(structs.CommandServerReport, w.now, &structs.ServerReport{
				Gone:            hash[0] == 1,
				ServerCondition: structs.ServerCondition{ID: id, Full: hash[0] == 0, Backup: id[:min(1, int(hash[0]))]},
			})
		case 0, 2:
			return encode(structs.CommandServerRemoval, w.now, &structs.ServerRemoval{ID: id, Back: hash[0] == 0})
		}
		return encode(structs.CommandClusterInit, w.now, &structs.ClusterInit{Cluster: structs.Cluster{ID: "c1", SetupHash: make([]byte, 32)}})
	}
}

// tables returns the bytes of everything but the index, to see whether a
// command changed anything.
func tables(s *Snapshot) string {
	all := fmt.Appendf(nil, "%d events", len(mustFirst[*metaRow](s.db, tableMeta, indexID, metaKey()).ring))
	for _, d := range dumps() {
		if d.table == tableMeta || !d.stands(formatVersion) {
			continue
		}
		for row := range each[any](s.db, d.table, d.index, nil) {
			data, err := wire.Marshal(row)
			if err != nil {
				panic(err)
			}
			all = append(all, data...)
		}
	}
	return string(all)
}

package forecast

import (
	"fmt"
	"math/rand/v2"
	"time"

	"nomadlike/nomadlike/predict"
	"nomadlike/nomadlike/scheduler"
	"nomadlike/nomadlike/structs"
)

var start = structs.At(time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC))

// testNode is a node of 64 cores and some devices.
func testNode(name string, devices int) *structs.Node {
	n := &structs.Node{
		ID: "id-" + name, Name: name, Status: structs.NodeReady, Eligibility: structs.NodeEligible, Drivers: []string{"exec"},
		Capacity: structs.Capacity{CPU: 64, Memory: 512 << 30, PortMin: 20000, PortMax: 29999},
	}
	for i := range devices {
		n.Devices = append(n.Devices, structs.Device{ID: fmt.Sprintf("gpu-%d", i), Index: i, Kind: "nvidia/gpu", Model: "A800", Memory: 80 << 30, Healthy: true})
	}
	return n
}

// testJob is a job of so many nodes with so many devices on each.
func testJob(id string, nodes, devices int, limit time.Duration) *structs.Job {
	j := &structs.Job{
		ID: id, Name: id, Project: "lab", User: "ann", Type: structs.JobTypeTraining, Priority: structs.PriorityNormal, Nodes: nodes,
		TimeLimit: structs.Duration(limit), Task: structs.Task{Driver: "exec"}, Distributed: structs.Distributed{Mode: structs.ModeNone},
		Resources: []structs.Resources{{CPU: float64(devices), Memory: int64(devices) << 30}},
	}
	if devices > 0 {
		j.Resources[0].Devices = []structs.DeviceRequest{{Kind: "nvidia/gpu", Count: devices}}
	}
	return j
}

// drive is a board that is driven by hand.
type drive struct {
	board *scheduler.Board
	index uint64
	now   structs.UnixNano
	jobs  map[string]*structs.Job
}

func newDrive(settings scheduler.Settings, nodes, devices int) *drive {
	settings.Alone, settings.Quiet = true, true
	d := &drive{board: scheduler.NewBoard(settings), now: start, jobs: map[string]*structs.Job{}}
	for i := range nodes {
		n := testNode(fmt.Sprintf("n%04d", i), devices)
		d.board.PutNode(n.ID, n, nil)
	}
	return d
}

// submit queues a job now.
func (d *drive) submit(j *structs.Job) {
	d.index++
	j.SubmittedAt = d.now
	d.jobs[j.ID] = j
	for i := range max(1, j.SubjobCount()) {
		d.board.Submit(j, &structs.Subjob{JobID: j.ID, Index: i, State: structs.JobQueued, QueuedAt: d.now, CreateIndex: d.index, Place: d.index << 20})
	}
}

// pass lets the board place what it can, and notes that it runs.
func (d *drive) pass() int {
	placed := 0
	for {
		plan := d.board.Pass(d.now, 1)
		for _, g := range plan.Gangs {
			d.board.Started(g.JobID, g.Subjob, d.now)
		}
		if placed += len(plan.Gangs); len(plan.Gangs) == 0 {
			return placed
		}
	}
}

// ready makes the board one that a server would have.
func (d *drive) ready(settings scheduler.Settings) *scheduler.Board {
	d.board.SetSettings(settings)
	return d.board
}

// crowd is a full cluster: so many nodes of eight devices, running and queued
// jobs of mixed sizes with learned run times.
func crowd(nodes, running, queued int) Input {
	rng := rand.New(rand.NewPCG(7, 7))
	model := predict.NewModel()
	size := func() (int, int) {
		switch x := rng.Float64(); {
		case x < 0.70:
			return 1, 1
		case x < 0.85:
			return 1, 4
		case x < 0.96:
			return 1, 8
		default:
			return 2 + rng.IntN(3), 8
		}
	}
	length := func(user int) time.Duration {
		return time.Duration(float64(10*time.Minute) * float64(1+user) * rng.ExpFloat64())
	}
	mk := func(id string) *structs.Job {
		n, dev := size()
		user := rng.IntN(40)
		j := testJob(id, n, dev, time.Duration(1+rng.IntN(48))*time.Hour)
		j.User, j.Project = fmt.Sprintf("u%02d", user), fmt.Sprintf("p%d", user%6)
		j.Name = fmt.Sprintf("train-%d", rng.IntN(3))
		return j
	}
	for i := range 2000 {
		j := mk(fmt.Sprintf("h%04d", i))
		var user int
		fmt.Sscanf(j.User, "u%d", &user)
		model.Learn(predict.Run{
			Project: j.Project, User: j.User, Name: j.Name, Pool: structs.PoolDefault, Devices: devicesOf(j), Nodes: j.Nodes,
			Runtime: length(user), TimeLimit: j.TimeLimit.Std(), Outcome: structs.OutcomeSucceeded, EndedAt: start.Add(-time.Duration(2000-i) * 10 * time.Minute),
		})
	}
	d := newDrive(scheduler.Settings{}, nodes, 8)
	const before = 12 * time.Hour
	for i := 0; d.running() < running; i++ {
		d.now = start.Add(-before + time.Duration(d.running())*before/time.Duration(running))
		d.submit(mk(fmt.Sprintf("r%04d", i)))
		if d.pass() == 0 {
			d.board.Withdraw(fmt.Sprintf("r%04d", i), 0)
		}
		if i > 20*running {
			panic("too few nodes")
		}
	}
	d.now = start
	for i := range queued {
		d.submit(mk(fmt.Sprintf("q%04d", i)))
	}
	outlook := model.Outlook(d.now, func(yield func(predict.Ongoing) bool) {
		for r := range d.board.Running() {
			if !yield(predict.Ongoing{Job: r.Job, Since: r.PlacedAt}) {
				return
			}
		}
	})
	return Input{Board: d.ready(scheduler.Settings{Model: outlook})}
}

func (d *drive) running() int {
	count := 0
	for range d.board.Running() {
		count++
	}
	return count
}

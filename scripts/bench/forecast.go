package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"syscall"
	"time"

	"nomadlike/nomadlike/forecast"
	"nomadlike/nomadlike/predict"
	"nomadlike/nomadlike/scheduler"
	"nomadlike/nomadlike/structs"
)

// The queue that forecasts are measured on.
const (
	forecastNodes   = 430 // of eight devices
	forecastRunning = 1000
	forecastQueued  = 1000
	forecastHistory = 2000 // runs that ended before
	forecastRepeats = 10   // looks for each run of the benchmark
	forecastAsked   = 20   // new jobs for each
)

// serverGC is what a server sets for itself, too.
const serverGC = 200

// forecasts measures, in this process and with 30 sampled futures, the processor
// time of the forecast of a whole queue, and of that of one new job with what
// would help it.
func forecasts(ctx context.Context, b *bench) error {
	debug.SetGCPercent(serverGC)
	crowd := newCrowd()
	if err := crowd.fill(); err != nil {
		return err
	}
	var queue, job []float64
	for i := range max(1, b.runs) * forecastRepeats / 5 {
		if err := ctx.Err(); err != nil {
			return err
		}
		begin := processor()
		futures := forecast.Look(crowd.input(), crowd.now, uint64(i))
		if starts := futures.Queue(); len(starts) != forecastQueued {
			return fmt.Errorf("forecast a queue: %d of %d starts", len(starts), forecastQueued)
		}
		queue = append(queue, processor()-begin)
		for k := range forecastAsked {
			asked := crowd.job(fmt.Sprintf("asked-%d", k))
			begin = processor()
			futures.Job(asked)
			job = append(job, processor()-begin)
		}
	}
	report("forecast_queue_1000_cpu_ms", "ms", queue)
	report("forecast_new_job_cpu_ms", "ms", job)
	return nil
}

// processor is the processor time that this process has used, in milliseconds:
// what a forecast takes on one core that nobody else wants.
func processor() float64 {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e6
}

// crowd is a full cluster with a long queue and run times that were learned.
type crowd struct {
	rng        *rand.Rand
	model      *predict.Model
	board      *scheduler.Board
	calibrator *forecast.Calibrator
	now        structs.UnixNano
	submitted  uint64
}

func newCrowd() *crowd {
	return &crowd{
		rng: rand.New(rand.NewPCG(7, 7)), model: predict.NewModel(), calibrator: forecast.NewCalibrator(),
		board: scheduler.NewBoard(scheduler.Settings{Alone: true, Quiet: true}), now: structs.UnixNano(1_790_000_000_000_000_000),
	}
}

// input is what a server would give to a look.
func (c *crowd) input() forecast.Input {
	c.board.SetSettings(scheduler.Settings{})
	view := c.model.Outlook(c.now, func(yield func(predict.Ongoing) bool) {
		for run := range c.board.Running() {
			if !yield(predict.Ongoing{Job: run.Job, Since: run.PlacedAt}) {
				return
			}
		}
	})
	c.board.SetModel(view)
	return forecast.Input{Board: c.board, Times: forecast.Learned(view), Calibration: c.calibrator, Futures: forecast.FuturesDefault}
}

// fill learns a history, and fills the cluster and the queue.
func (c *crowd) fill() error {
	for i := range forecastNodes {
		node := crowdNode(i)
		c.board.PutNode(node.ID, node, nil)
	}
	for i := range forecastHistory {
		job := c.job(fmt.Sprintf("past-%d", i))
		ended := c.now.Add(-time.Duration(forecastHistory-i) * 10 * time.Minute)
		c.model.Learn(predict.Run{
			Project: job.Project, User: job.User, Name: job.Name, Pool: structs.PoolDefault, Nodes: job.Nodes,
			Devices: job.Nodes * job.Resources[0].Devices[0].Count, Runtime: c.length(job), TimeLimit: job.TimeLimit.Std(),
			Outcome: structs.OutcomeSucceeded, EndedAt: ended,
		})
	}
	const before = 12 * time.Hour
	running := 0
	for tries := 0; running < forecastRunning; tries++ {
		if tries > 20*forecastRunning {
			return fmt.Errorf("fill a cluster: only %d gangs run", running)
		}
		at := c.now.Add(-before + time.Duration(running)*before/forecastRunning)
		job := c.queue(fmt.Sprintf("running-%d", tries), at)
		plan := c.board.Pass(at, 1)
		for i := range plan.Gangs {
			c.board.Started(plan.Gangs[i].JobID, plan.Gangs[i].Subjob, at)
			running++
		}
		c.board.Withdraw(job.ID, 0) // if it still waits
	}
	for i := range forecastQueued {
		c.queue(fmt.Sprintf("queued-%d", i), c.now)
	}
	return nil
}

// queue submits a job.
func (c *crowd) queue(id string, at structs.UnixNano) *structs.Job {
	job := c.job(id)
	job.ID, job.SubmittedAt = id, at
	c.submitted++
	c.board.Submit(job, &structs.Subjob{
		JobID: id, State: structs.JobQueued, QueuedAt: at, CreateIndex: c.submitted, Place: c.submitted << 20,
	})
	return job
}

// job is a new job of one of forty users: mostly small, some of several nodes.
func (c *crowd) job(name string) *structs.Job {
	nodes, devices, user := 1, 8, c.rng.IntN(40)
	switch share := c.rng.Float64(); {
	case share < 0.70:
		devices = 1
	case share < 0.85:
		devices = 4
	case share >= 0.96:
		nodes = 2 + c.rng.IntN(3)
	}
	return &structs.Job{
		Name: name, Project: fmt.Sprintf("p%d", user%6), User: fmt.Sprintf("u%02d", user), Type: structs.JobTypeTraining,
		Priority: structs.PriorityNormal, Nodes: nodes, TimeLimit: structs.Duration(time.Duration(1+c.rng.IntN(48)) * time.Hour),
		Task: structs.Task{Driver: "exec"}, Distributed: structs.Distributed{Mode: structs.ModeNone},
		Resources: []structs.Resources{{
			CPU: float64(devices), Memory: int64(devices) << 30, Devices: []structs.DeviceRequest{{Kind: "nvidia/gpu", Count: devices}},
		}},
	}
}

// length is how long a job ran: users differ.
func (c *crowd) length(job *structs.Job) time.Duration {
	user := 0
	fmt.Sscanf(job.User, "u%d", &user) // it was made by job
	return time.Duration(float64(10*time.Minute) * float64(1+user) * c.rng.ExpFloat64())
}

func crowdNode(number int) *structs.Node {
	name := fmt.Sprintf("n%04d", number)
	node := &structs.Node{
		ID: "id-" + name, Name: name, Status: structs.NodeReady, Eligibility: structs.NodeEligible, Drivers: []string{"exec"},
		Capacity: structs.Capacity{CPU: 64, Memory: 512 << 30, PortMin: 20000, PortMax: 29999},
	}
	for i := range 8 {
		node.Devices = append(node.Devices, structs.Device{
			ID: fmt.Sprintf("gpu-%d", i), Index: i, Kind: "nvidia/gpu", Model: "A800", Memory: 80 << 30, Healthy: true,
		})
	}
	return node
}

package usage

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/client/checkpoint"
	"nomadlike/nomadlike/client/devices"
	"nomadlike/nomadlike/client/fingerprint"
	"nomadlike/nomadlike/client/history"
	"nomadlike/nomadlike/client/layout"
	"nomadlike/nomadlike/client/loop"
	"nomadlike/nomadlike/client/machine"
	"nomadlike/nomadlike/client/metrics"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// How a node measures itself.
const (
	// usageFresh is how old an answer may be: many may look at one node.
	usageFresh = time.Second
	// usageRateMax is the greatest time between two measurements that a rate
	// is made of; over a longer one it would tell of the past.
	usageRateMax   = time.Minute
	taskMeasureMax = 2 * time.Second // patience with a driver
	measuringMax   = 16              // tasks measured at one time
)

// Usage measures the node, its devices and its tasks, and keeps what it measured.
// Any goroutine may use it.
type Usage struct {
	Config
	gauge *gauge
	book  *history.Book

	mu struct {
		sync.Mutex
		meters  map[string]*metrics.Collector // of allocations that run
		records map[string]*record            // of allocations that run
	}
}

// Config is what measuring needs.
type Config struct {
	Layout  layout.Layout
	Drivers map[string]driver.Driver
	Devices MeasuredDevices
	Disks   *machine.Disks
	Inbox   *loop.Inbox
	Places  PlaceFinder
	Load    func() fingerprint.Load
	Now     func() time.Time
	Log     *slog.Logger
}

// MeasuredDevices are the devices of a node, as measuring needs them.
type MeasuredDevices interface {
	Registered() []structs.Device
	Measured() map[string]devices.Measurement
}

// PlaceFinder finds where a directory of a task lies on the node.
type PlaceFinder interface {
	PlaceOf(a *structs.Assignment, dir string) (checkpoint.Place, bool)
}

// Open reads what an earlier process of the agent has measured. What cannot be
// read is logged.
func Open(config Config) *Usage {
	u := &Usage{Config: config, gauge: newGauge()}
	u.mu.meters, u.mu.records = make(map[string]*metrics.Collector), make(map[string]*record)
	book, err := history.Open(filepath.Join(config.Layout.Root, historyFile), config.Now())
	if err != nil {
		config.Log.Warn("what devices measured before is lost", logkey.Error, err)
	}
	u.book = book
	return u
}

// gauge measures the node when somebody asks, and remembers what it found, for
// rates and for those who ask soon after.
type gauge struct {
	turn chan struct{} // holds a token while nobody measures
	last structs.NodeUsage
}

func newGauge() *gauge {
	g := &gauge{turn: make(chan struct{}, 1)}
	g.turn <- struct{}{}
	return g
}

// Current measures the node: its processors and memory, its devices and its
// tasks. A caller soon after another gets what the other got; keepRanks asks as
// long as tasks run, and devices are measured all the time. Any goroutine may call it; the answer is shared and
// must not be changed.
func (u *Usage) Current(ctx context.Context) (*structs.NodeUsage, error) {
	select {
	case <-u.gauge.turn:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { u.gauge.turn <- struct{}{} }()
	now := u.Now()
	if age := now.Sub(u.gauge.last.At.Time()); u.gauge.last.At != 0 && age >= 0 && age < usageFresh {
		shared := u.gauge.last
		return &shared, nil
	}
	load := u.Load()
	usage := structs.NodeUsage{
		At: structs.At(now), CPUSeconds: load.CPUSeconds, MemoryUsed: load.MemoryUsed, MemoryTotal: load.MemoryTotal,
		Devices: deviceUsages(u.Devices.Measured()),
	}
	usage.DiskFree, usage.InodesFree = u.Disks.Room()
	if err := u.measureTasks(ctx, &usage); err != nil {
		return nil, err
	}
	addRates(&usage, &u.gauge.last)
	u.gauge.last = usage
	shared := usage
	return &shared, nil
}

// deviceUsages are measurements in the words of the wire, by id.
func deviceUsages(measured map[string]devices.Measurement) []structs.DeviceUsage {
	usage := make([]structs.DeviceUsage, 0, len(measured))
	for _, id := range slices.Sorted(maps.Keys(measured)) {
		stats := measured[id]
		one := structs.DeviceUsage{ID: id, At: structs.At(stats.At), Gauges: stats.Gauges}
		for _, p := range stats.Processes[:min(len(stats.Processes), structs.DeviceProcessesMax)] {
			one.Processes = append(one.Processes, structs.DeviceProcess(p))
		}
		usage = append(usage, one)
	}
	return usage
}

// measureTasks asks the drivers of all running tasks, several at a time.
func (u *Usage) measureTasks(ctx context.Context, usage *structs.NodeUsage) error {
	type running struct {
		id     string
		driver driver.Driver
	}
	var tasks []running
	err := u.Inbox.Ask(ctx, func(l *loop.Loop) {
		for _, s := range l.States() {
			if d := u.Drivers[s.Driver]; s.Phase == alloc.PhaseRunning && d != nil {
				tasks = append(tasks, running{s.AllocID, d})
			}
		}
	})
	if err != nil {
		return err
	}
	var measured struct {
		sync.Mutex
		tasks  []structs.TaskUsage
		failed int
	}
	var working sync.WaitGroup
	places := make(chan struct{}, measuringMax)
	for _, task := range tasks {
		places <- struct{}{}
		working.Go(func() {
			defer func() { <-places }()
			limited, cancel := context.WithTimeout(ctx, taskMeasureMax)
			defer cancel()
			usage, err := task.driver.Stats(limited, alloc.TaskID(task.id))
			measured.Lock()
			defer measured.Unlock()
			switch {
			case err == nil:
				measured.tasks = append(measured.tasks, structs.TaskUsage{
					AllocID: task.id, CPUSeconds: usage.CPUTime.Seconds(), Memory: usage.RSSBytes, Processes: usage.Processes,
				})
			case !errors.Is(err, driver.ErrTaskEnded) && !errors.Is(err, driver.ErrUnknownTask):
				measured.failed++
				u.Log.Debug("measure task", logkey.AllocID, task.id, logkey.Error, err)
			}
		})
	}
	working.Wait()
	slices.SortFunc(measured.tasks, func(a, b structs.TaskUsage) int { return cmp.Compare(a.AllocID, b.AllocID) })
	usage.Tasks, usage.Unmeasured = measured.tasks, measured.failed
	return ctx.Err()
}

// addRates fills in how many cores were busy since the measurement before.
func addRates(now, before *structs.NodeUsage) {
	span := now.At.Sub(before.At)
	if before.At == 0 || span <= 0 || span > usageRateMax {
		return
	}
	rate := func(now, before float64) float64 { return max(now-before, 0) / span.Seconds() }
	now.CPUCores = rate(now.CPUSeconds, before.CPUSeconds)
	earlier := make(map[string]float64, len(before.Tasks))
	for i := range before.Tasks {
		earlier[before.Tasks[i].AllocID] = before.Tasks[i].CPUSeconds
	}
	for i := range now.Tasks {
		if last, known := earlier[now.Tasks[i].AllocID]; known {
			now.Tasks[i].CPUCores = rate(now.Tasks[i].CPUSeconds, last)
		}
	}
}

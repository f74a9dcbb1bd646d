package client

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/driver"
)

// How a node measures itself.
const (
	// figuresFresh is how old an answer may be: many may look at one node.
	figuresFresh = time.Second
	// figuresRateMax is the greatest time between two measurements that a rate
	// is made of; over a longer one it would tell of the past.
	figuresRateMax = time.Minute
	taskMeasureMax = 2 * time.Second // patience with a driver
	measuringMax   = 16              // tasks measured at one time
)

// gauge measures the node when somebody asks, and remembers what it found, for
// rates and for those who ask soon after.
type gauge struct {
	turn chan struct{} // holds a token while nobody measures
	last structs.NodeFigures
}

func newGauge() *gauge {
	g := &gauge{turn: make(chan struct{}, 1)}
	g.turn <- struct{}{}
	return g
}

// Figures measures the node: its processors and memory, its devices and its
// tasks. Who asks soon after another gets what the other got; keepRanks asks as
// long as tasks run, and devices are measured all the time. Any goroutine may call it; the answer is shared and
// must not be changed.
func (c *Client) Figures(ctx context.Context) (*structs.NodeFigures, error) {
	select {
	case <-c.gauge.turn:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { c.gauge.turn <- struct{}{} }()
	now := c.config.Now()
	if age := now.Sub(c.gauge.last.At.Time()); c.gauge.last.At != 0 && age >= 0 && age < figuresFresh {
		shared := c.gauge.last
		return &shared, nil
	}
	load := c.config.Load()
	figures := structs.NodeFigures{
		At: structs.At(now), CPUSeconds: load.CPUSeconds, MemoryUsed: load.MemoryUsed, MemoryTotal: load.MemoryTotal,
		Devices: deviceFigures(c.devices.figures()),
	}
	figures.DiskFree, figures.InodesFree = c.diskFigures()
	if err := c.measureTasks(ctx, &figures); err != nil {
		return nil, err
	}
	addRates(&figures, &c.gauge.last)
	c.gauge.last = figures
	shared := figures
	return &shared, nil
}

// deviceFigures are measurements in the words of the wire, by id.
func deviceFigures(measured map[string]measurement) []structs.DeviceFigures {
	figures := make([]structs.DeviceFigures, 0, len(measured))
	for _, id := range slices.Sorted(maps.Keys(measured)) {
		stats := measured[id]
		one := structs.DeviceFigures{ID: id, At: structs.At(stats.at), Gauges: stats.Gauges}
		for _, p := range stats.Processes[:min(len(stats.Processes), structs.DeviceProcessesMax)] {
			one.Processes = append(one.Processes, structs.DeviceProcess(p))
		}
		figures = append(figures, one)
	}
	return figures
}

// measureTasks asks the drivers of all running tasks, several at a time.
func (c *Client) measureTasks(ctx context.Context, figures *structs.NodeFigures) error {
	type running struct {
		id     string
		driver driver.Driver
	}
	var tasks []running
	err := c.ask(ctx, func() {
		for _, s := range c.loop.table.States() {
			if d := c.config.Drivers[s.Driver]; s.Phase == alloc.PhaseRunning && d != nil {
				tasks = append(tasks, running{s.AllocID, d})
			}
		}
	})
	if err != nil {
		return err
	}
	var measured struct {
		sync.Mutex
		tasks  []structs.TaskFigures
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
				measured.tasks = append(measured.tasks, structs.TaskFigures{
					AllocID: task.id, CPUSeconds: usage.CPUTime.Seconds(), Memory: usage.RSSBytes, Processes: usage.Processes,
				})
			case !errors.Is(err, driver.ErrTaskEnded) && !errors.Is(err, driver.ErrUnknownTask):
				measured.failed++
				c.log.Debug("measure task", logkey.AllocID, task.id, logkey.Error, err)
			}
		})
	}
	working.Wait()
	slices.SortFunc(measured.tasks, func(a, b structs.TaskFigures) int { return cmp.Compare(a.AllocID, b.AllocID) })
	figures.Tasks, figures.Unmeasured = measured.tasks, measured.failed
	return ctx.Err()
}

// addRates fills in how many cores were busy since the measurement before.
func addRates(now, before *structs.NodeFigures) {
	span := now.At.Sub(before.At)
	if before.At == 0 || span <= 0 || span > figuresRateMax {
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

// Treat does to a device what an operator asks for. Errors are *structs.Error.
func (c *Client) Treat(ctx context.Context, order *structs.DeviceTreat) error {
	_, plugin, ok := c.devices.find(order.Device)
	if !ok {
		return structs.NewError(structs.CodeNotFound, "client.device_gone", "device", order.Device)
	}
	c.log.Info("operator treats device", "device", order.Device, "act", string(order.Act), logkey.User, order.By)
	err := c.treat(ctx, plugin, order)
	var told *structs.Error
	switch {
	case err == nil || errors.As(err, &told):
		return err
	case errors.Is(err, device.ErrBusy):
		return structs.NewError(structs.CodeConflict, "client.device_busy", "device", order.Device).Because(err)
	case errors.Is(err, device.ErrUnsupported):
		return structs.NewError(structs.CodeConflict, "client.device_untreatable", "device", order.Device).Because(err)
	}
	return structs.NewError(structs.CodeUnavailable, "client.device_failed", "device", order.Device, "cause", err)
}

// mayReset refuses to reset a device that an allocation of this node is on, or
// whose other parts are in use, and keeps the node's own healing away from it.
func (c *Client) mayReset(ctx context.Context, id string) error {
	var refusal error
	err := c.ask(ctx, func() {
		devices, _ := c.devices.registered()
		card := make(map[string]string, len(devices)) // the physical device of each
		for i := range devices {
			card[devices[i].ID] = cmp.Or(devices[i].Attrs[device.AttrParent], devices[i].ID)
		}
		for _, s := range c.loop.table.States() {
			a := c.loop.table.Assignment(s.AllocID)
			if s.Phase == alloc.PhaseEnded || a == nil {
				continue
			}
			if slices.ContainsFunc(a.Alloc.Devices, func(used string) bool { return card[used] == card[id] }) {
				refusal = structs.NewError(structs.CodeConflict, "client.device_in_use", "device", id, "job", a.Alloc.JobName)
			}
		}
		c.loop.healing[id] = c.config.Now().Add(healRetry)
	})
	if err != nil {
		return err
	}
	return refusal
}

// treat carries out an order. A device that only its operators kept from work
// needs no plugin that can heal.
func (c *Client) treat(ctx context.Context, plugin string, order *structs.DeviceTreat) error {
	healer, can := c.devices.plugins[plugin].(device.Healer)
	switch order.Act {
	case structs.DeviceQuarantine:
		if err := c.devices.isolated.put(order.Device, isolated{By: order.By, Reason: order.Reason, At: structs.At(c.config.Now())}); err != nil {
			return err
		}
		c.devices.tell()
		return nil
	case structs.DeviceClear:
		was, err := c.devices.isolated.take(order.Device)
		if err != nil {
			return err
		}
		if was {
			c.devices.tell()
			if d, _, _ := c.devices.find(order.Device); device.ActionOf(&d).TakesWork() {
				return nil
			}
		}
		if can {
			return healer.Clear(ctx, []string{order.Device})
		}
	case structs.DeviceReset:
		if can {
			if err := c.mayReset(ctx, order.Device); err != nil {
				return err
			}
			return healer.Heal(ctx, []string{order.Device})
		}
	default:
		return structs.NewError(structs.CodeInvalid, "client.device_act", "act", order.Act)
	}
	return structs.NewError(structs.CodeConflict, "client.device_untreatable", "device", order.Device)
}

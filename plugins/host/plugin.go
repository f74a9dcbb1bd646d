package host

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/hashicorp/go-plugin"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/driverplugin"
)

const (
	// recoverLimit bounds taking tasks over after a restart.
	recoverLimit = 15 * time.Second
	recoverMany  = 16 // at a time
)

// driverContract is how driver plugins are spoken to.
func driverContract(name string) contract[*driverplugin.Client] {
	return contract[*driverplugin.Client]{
		what: "driver plugin", version: driverplugin.ProtocolVersion, unavailable: driver.ErrUnavailable,
		service: driverplugin.Name, handshake: driverplugin.Handshake(), adapter: &driverplugin.Adapter{PluginName: name},
		dial: driverplugin.DialOptions(),
	}
}

var _ plugin.GRPCPlugin = (*driverplugin.Adapter)(nil)

// Plugin is an external driver that outlives the deaths of its program. It
// implements driver.Driver and driver.Lister; its methods may be called from
// any goroutine.
type Plugin struct {
	process[*driverplugin.Client]

	tasks struct {
		sync.Mutex
		handles map[driver.TaskID]driver.Handle
		masks   map[driver.TaskID][]structs.Mask // of tasks with secrets
	}
}

func newPlugin(config Config, each PluginConfig) *Plugin {
	p := &Plugin{process: process[*driverplugin.Client]{
		contract: driverContract(each.Name), source: external(config, each.Name, each.SHA256, each.Args, each.Env),
		timing: config.timing, runDir: config.RunDir, log: config.Logger.With(logkey.Plugin, each.Name),
	}}
	p.tasks.handles = make(map[driver.TaskID]driver.Handle)
	p.tasks.masks = make(map[driver.TaskID][]structs.Mask)
	p.prepare = p.recoverTasks
	p.start()
	return p
}

// recoverTasks hands a new program the tasks that its predecessor had. A task
// that it cannot take is left for its waiters to find out.
func (p *Plugin) recoverTasks(ctx context.Context, to *driverplugin.Client) error {
	p.tasks.Lock()
	handles := make([]driver.Handle, 0, len(p.tasks.handles))
	for _, handle := range p.tasks.handles {
		handles = append(handles, handle)
	}
	masks := maps.Clone(p.tasks.masks)
	p.tasks.Unlock()
	ctx, cancel := context.WithTimeout(ctx, recoverLimit)
	defer cancel()
	limit := make(chan struct{}, recoverMany)
	var all sync.WaitGroup
	for _, handle := range handles {
		limit <- struct{}{}
		all.Go(func() {
			defer func() { <-limit }()
			if err := to.Recover(ctx, handle); err != nil {
				p.log.Error("task cannot be recovered", logkey.TaskID, handle.TaskID, logkey.Error, err)
				return
			}
			mask, ok := masks[handle.TaskID]
			if !ok {
				return
			}
			if err := to.Mask(ctx, handle.TaskID, mask); err != nil && !errors.Is(err, driver.ErrUnsupported) {
				p.log.Error("driver is not told what logs of a task do not hold", logkey.TaskID, handle.TaskID, logkey.Error, err)
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return errors.New("it does not recover its tasks in time")
	}
	return nil
}

func (p *Plugin) remember(handle driver.Handle) {
	p.tasks.Lock()
	defer p.tasks.Unlock()
	p.tasks.handles[handle.TaskID] = handle
}

// rememberMask keeps what the logs of a task do not hold.
func (p *Plugin) rememberMask(id driver.TaskID, mask []structs.Mask) {
	if mask == nil {
		return
	}
	p.tasks.Lock()
	defer p.tasks.Unlock()
	p.tasks.masks[id] = mask
}

func (p *Plugin) forget(id driver.TaskID) {
	p.tasks.Lock()
	defer p.tasks.Unlock()
	delete(p.tasks.handles, id)
	delete(p.tasks.masks, id)
}

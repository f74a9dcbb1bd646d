package host

import (
	"context"
	"errors"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// Fingerprint reports the plugin's own view while it runs, and that it is
// unhealthy while it does not.
func (p *Plugin) Fingerprint(ctx context.Context) (<-chan driver.Fingerprint, error) {
	reports := make(chan driver.Fingerprint)
	go func() { // ends with ctx, or with the plugin's loop
		defer close(reports)
		for ctx.Err() == nil && p.life.Err() == nil {
			p.fingerprintOnce(ctx, reports)
		}
	}()
	return reports, nil
}

// fingerprintOnce follows one life of the program.
func (p *Plugin) fingerprintOnce(ctx context.Context, to chan<- driver.Fingerprint) {
	send := func(report driver.Fingerprint) bool {
		select {
		case to <- report:
			return true
		case <-ctx.Done():
		case <-p.life.Done():
		}
		return false
	}
	r, err := p.up(ctx)
	if err != nil {
		if ctx.Err() == nil && p.life.Err() == nil {
			send(driver.Fingerprint{Health: driver.Unhealthy, Reason: err.Error()})
		}
		return
	}
	reports, err := r.Fingerprint(ctx)
	if err == nil {
		for report := range reports {
			if !send(report) {
				return
			}
		}
	}
	if current, _, change := p.now(); current == r { // not noticed yet that it has died
		select {
		case <-change:
		case <-ctx.Done():
		case <-p.life.Done():
		}
	}
}

// Start starts a task and remembers its handle for restarts of the plugin.
func (p *Plugin) Start(ctx context.Context, spec driver.TaskSpec) (driver.Handle, error) {
	r, err := p.up(ctx)
	if err != nil {
		return driver.Handle{}, err
	}
	handle, err := r.Start(ctx, spec)
	if err == nil {
		p.remember(handle)
		p.rememberMask(spec.ID, spec.Mask)
	}
	return handle, err
}

// Mask implements driver.Masker: the program is told now, and again whenever it had to
// be restarted. The texts are in this process's memory alone.
func (p *Plugin) Mask(ctx context.Context, id driver.TaskID, mask []structs.Mask) error {
	r, err := p.up(ctx)
	if err != nil {
		return err
	}
	if err := r.Mask(ctx, id, mask); err != nil {
		return err
	}
	p.rememberMask(id, mask)
	return nil
}

// Recover takes over a task of an earlier agent.
func (p *Plugin) Recover(ctx context.Context, handle driver.Handle) error {
	r, err := p.up(ctx)
	if err != nil {
		return err
	}
	if err := r.Recover(ctx, handle); err != nil {
		return err
	}
	p.remember(handle)
	return nil
}

// Wait outlasts deaths of the program: the next one has recovered the task.
func (p *Plugin) Wait(ctx context.Context, id driver.TaskID) (driver.ExitResult, error) {
	const forever = time.Duration(1<<63 - 1)
	for {
		r, err := p.get(ctx, forever)
		if err != nil {
			return driver.ExitResult{}, err
		}
		result, err := r.Wait(ctx, id)
		if !errors.Is(err, driver.ErrUnavailable) {
			return result, err
		}
		timer := time.NewTimer(exitPoll) // until the loop has noticed, too
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return driver.ExitResult{}, ctx.Err()
		}
	}
}

// Stop asks for the end of a task.
func (p *Plugin) Stop(ctx context.Context, id driver.TaskID, signal string, grace time.Duration) error {
	r, err := p.up(ctx)
	if err != nil {
		return err
	}
	return r.Stop(ctx, id, signal, grace)
}

// Destroy forgets a task.
func (p *Plugin) Destroy(ctx context.Context, id driver.TaskID) error {
	r, err := p.up(ctx)
	if err != nil {
		return err
	}
	if err := r.Destroy(ctx, id); err != nil {
		return err
	}
	p.forget(id)
	return nil
}

// Signal sends a signal.
func (p *Plugin) Signal(ctx context.Context, id driver.TaskID, signal string) error {
	r, err := p.up(ctx)
	if err != nil {
		return err
	}
	return r.Signal(ctx, id, signal)
}

// Pause stops a task's processes.
func (p *Plugin) Pause(ctx context.Context, id driver.TaskID) error {
	r, err := p.up(ctx)
	if err != nil {
		return err
	}
	return r.Pause(ctx, id)
}

// Continue lets them go on.
func (p *Plugin) Continue(ctx context.Context, id driver.TaskID) error {
	r, err := p.up(ctx)
	if err != nil {
		return err
	}
	return r.Continue(ctx, id)
}

// Stats measures a task.
func (p *Plugin) Stats(ctx context.Context, id driver.TaskID) (driver.Usage, error) {
	r, err := p.up(ctx)
	if err != nil {
		return driver.Usage{}, err
	}
	return r.Stats(ctx, id)
}

// Exec runs a command inside a task.
func (p *Plugin) Exec(ctx context.Context, id driver.TaskID, spec driver.ExecSpec, streams driver.Streams) (driver.ExitResult, error) {
	r, err := p.up(ctx)
	if err != nil {
		return driver.ExitResult{}, err
	}
	return r.Exec(ctx, id, spec, streams)
}

// List names the tasks that the plugin finds.
func (p *Plugin) List(ctx context.Context) ([]driver.Handle, error) {
	r, err := p.up(ctx)
	if err != nil {
		return nil, err
	}
	return r.List(ctx)
}

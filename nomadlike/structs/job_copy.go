package structs

import (
	"maps"
	"slices"
)

// Copy returns a job that shares nothing with j, so that either may be changed
// without the other seeing it. A nil job copies to nil.
func (j *Job) Copy() *Job {
	if j == nil {
		return nil
	}
	c := *j
	c.Batch = j.Batch.Copy()
	c.Sweep = j.Sweep.Copy()
	c.Resources = slices.Clone(j.Resources)
	for i := range c.Resources {
		c.Resources[i] = c.Resources[i].Copy()
	}
	c.Placement.Nodes = slices.Clone(j.Placement.Nodes)
	c.VIP = j.VIP.Copy()
	c.Task = j.Task.Copy()
	c.Algorithms = copyRefs(j.Algorithms)
	c.Datasets = copyRefs(j.Datasets)
	c.Models = copyRefs(j.Models)
	c.Volumes = copyRefs(j.Volumes)
	c.Mounts = slices.Clone(j.Mounts)
	c.OutputKeep = clonePointer(j.OutputKeep)
	c.Restart = clonePointer(j.Restart)
	c.LimitWarning = clonePointer(j.LimitWarning)
	c.Checkpoint = j.Checkpoint.Copy()
	c.Elastic = clonePointer(j.Elastic)
	c.Resume = clonePointer(j.Resume)
	c.Supports = j.Supports.Copy()
	c.Throttle = clonePointer(j.Throttle)
	c.Debug = clonePointer(j.Debug)
	c.Hang = clonePointer(j.Hang)
	c.Tensorboard = clonePointer(j.Tensorboard)
	if c.Metrics = clonePointer(j.Metrics); c.Metrics != nil {
		c.Metrics.Patterns = slices.Clone(j.Metrics.Patterns)
	}
	c.Meta = maps.Clone(j.Meta)
	c.Tags = slices.Clone(j.Tags)
	c.Workdir = j.Workdir.Copy()
	c.Notify = j.Notify.Copy()
	c.After = slices.Clone(j.After)
	return &c
}

// copyRefs returns references that share nothing with refs.
func copyRefs(refs []DataRef) []DataRef {
	c := slices.Clone(refs)
	for i := range c {
		c[i].Object = clonePointer(c[i].Object)
	}
	return c
}

// Copy returns a batch that shares nothing with b; nil copies to nil.
func (b *Batch) Copy() *Batch {
	if b == nil {
		return nil
	}
	c := *b
	c.Subtasks = slices.Clone(b.Subtasks)
	for i := range c.Subtasks {
		c.Subtasks[i].Env = maps.Clone(c.Subtasks[i].Env)
	}
	return &c
}

// Copy returns a spec that shares nothing with r.
func (r Resources) Copy() Resources {
	r.Devices = slices.Clone(r.Devices)
	for i := range r.Devices {
		r.Devices[i].IDs = slices.Clone(r.Devices[i].IDs)
		r.Devices[i].Models = slices.Clone(r.Devices[i].Models)
	}
	r.Ports = slices.Clone(r.Ports)
	return r
}

// Copy returns a choice of machines that shares nothing with v; nil copies to nil.
func (v *VIP) Copy() *VIP {
	if v == nil {
		return nil
	}
	c := &VIP{Machines: slices.Clone(v.Machines)}
	if v.Ask != nil {
		ask := *v.Ask
		c.Ask = &ask
	}
	return c
}

// Copy returns what shares nothing with s; nil copies to nil.
func (s *Supports) Copy() *Supports {
	if s == nil {
		return nil
	}
	return &Supports{Pause: clonePointer(s.Pause), Throttle: clonePointer(s.Throttle), FinishNow: clonePointer(s.FinishNow), Resume: clonePointer(s.Resume)}
}

// Copy returns a task that shares nothing with t.
func (t Task) Copy() Task {
	t.Env = maps.Clone(t.Env)
	t.Secrets = slices.Clone(t.Secrets)
	t.Hooks = slices.Clone(t.Hooks)
	t.Logs = clonePointer(t.Logs)
	t.Ulimits = maps.Clone(t.Ulimits)
	t.Options = maps.Clone(t.Options)
	return t
}

// Copy returns a checkpoint policy that shares nothing with c; nil copies to nil.
func (c *Checkpoint) Copy() *Checkpoint {
	if c == nil {
		return nil
	}
	d := *c
	d.Elastic = clonePointer(c.Elastic)
	d.Performance = clonePointer(c.Performance)
	return &d
}

// clonePointer copies what p points to, when that holds no references itself.
func clonePointer[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// Copy returns a workdir that shares nothing with w; nil copies to nil.
func (w *Workdir) Copy() *Workdir {
	c := clonePointer(w)
	if c != nil {
		c.Git = clonePointer(w.Git)
		c.Repo = clonePointer(w.Repo)
	}
	return c
}

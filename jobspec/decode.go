package jobspec

import (
	"time"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"nomadlike/nomadlike/structs"
)

// least is the smallest span where none would mean the default.
const least = structs.Duration(time.Millisecond)

// indexedIn gives the paths of blocks that may repeat.
func indexedIn(path string) func(int) string {
	return func(index int) string { return structs.IndexedPath(path, index) }
}

// readJob decodes the job block.
func (p *parser) readJob(block *hclsyntax.Block) {
	job := &structs.Job{}
	p.job = job
	r := p.reader(block, "job", "")
	p.places.note("", block.DefRange())
	r.label("name", &job.Name)
	p.rename(job)
	p.publishJob()
	text(r, "project", &job.Project)
	text(r, "type", &job.Type)
	text(r, "category", &job.Category)
	text(r, "description", &job.Description)
	text(r, "priority", &job.Priority)
	r.flag("preemptible", &job.Preemptible)
	text(r, "access", &job.Access)
	r.timeLimit(job)
	r.span("expected_runtime", &job.ExpectedRuntime, 0)
	r.whole("nodes", &job.Nodes, 1)
	r.span("stop_grace", &job.StopGrace, least)
	text(r, "fencing", &job.Fencing)
	r.flag("ssh", &job.SSH)
	r.flag("jupyter", &job.Jupyter)
	r.table("meta", &job.Meta)
	r.single("batch", func(r *reader) { r.batch(job) })
	r.single("distributed", func(r *reader) { r.distributed(&job.Distributed) })
	r.every("resources", indexedIn("resources"), func(r *reader) { job.Resources = append(job.Resources, r.resources()) })
	r.single("placement", func(r *reader) { r.placement(&job.Placement) })
	r.single("vip", func(r *reader) { r.vip(job) })
	r.single("task", func(r *reader) { r.task(&job.Task) })
	r.data(job)
	r.recovery(job)
	r.single("supports", func(r *reader) {
		r.noLabels()
		job.Supports = &structs.Supports{}
		r.maybe("pause", &job.Supports.Pause)
		r.maybe("throttle", &job.Supports.Throttle)
		r.maybe("finish_now", &job.Supports.FinishNow)
		r.maybe("resume", &job.Supports.Resume)
	})
	r.single("throttle", func(r *reader) {
		r.noLabels()
		job.Throttle = &structs.Throttle{}
		r.span("keep", &job.Throttle.Keep, 0)
		r.span("busy", &job.Throttle.Busy, least)
	})
	r.single("debug", func(r *reader) {
		r.noLabels()
		job.Debug = &structs.Debug{}
		r.span("hold", &job.Debug.Hold, 0)
	})
	r.single("tensorboard", func(r *reader) {
		r.noLabels()
		job.Tensorboard = &structs.Tensorboard{}
		r.place("logdir", &job.Tensorboard.LogDir)
	})
	r.single("metrics", func(r *reader) {
		r.noLabels()
		job.Metrics = &structs.Metrics{}
		r.words("patterns", &job.Metrics.Patterns)
		r.place("events", &job.Metrics.Events)
	})
	r.finish()
}

// rename gives the job the name, and the ending of it, that it is read with.
func (p *parser) rename(job *structs.Job) {
	if p.opts.Name != "" {
		job.Name = p.opts.Name
	}
	if ending := p.opts.NameEnding; ending != "" {
		job.Name = structs.NameWithEnding(job.Name, ending)
	}
}

func (r *reader) batch(job *structs.Job) {
	r.noLabels()
	job.Batch = &structs.Batch{}
	r.whole("count", &job.Batch.Count, 1)
	r.every("subtask", indexedIn("batch.subtask"), func(r *reader) {
		var s structs.BatchSubtask
		r.label("name", &s.Name)
		text(r, "algorithm", &s.Algorithm)
		text(r, "command", &s.Command)
		r.table("env", &s.Env)
		job.Batch.Subtasks = append(job.Batch.Subtasks, s)
	})
}

func (r *reader) distributed(d *structs.Distributed) {
	var mode string
	r.label("mode", &mode)
	d.Mode = structs.Mode(mode)
	text(r, "world_size", &d.WorldSize)
	text(r, "rewrite", &d.Rewrite)
	text(r, "launcher", &d.Launcher)
	r.whole("procs_per_node", &d.ProcsPerNode, 1)
	r.whole("master_port", &d.MasterPort, 1)
	r.whole("parameter_servers", &d.ParameterServers, 0)
	r.flag("chief", &d.Chief)
	r.whole("min_nodes", &d.MinNodes, 1)
	text(r, "rank_table", &d.RankTable)
	text(r, "emulate", &d.Emulate)
}

func (r *reader) resources() structs.Resources {
	var spec structs.Resources
	r.optionalLabel("label", &spec.Label)
	r.fraction("cpu", &spec.CPU, structs.CPUMin)
	r.size("memory", &spec.Memory, structs.MemoryMin)
	r.size("shared_memory", &spec.SharedMemory, 0)
	r.size("disk", &spec.Disk, structs.DiskMin)
	r.whole("sku", &spec.SKU, 1)
	r.flag("rdma", &spec.RDMA)
	r.every("device", indexedIn(r.field("device")), func(r *reader) {
		spec.Devices = append(spec.Devices, r.device())
	})
	r.every("port", indexedIn(r.field("port")), func(r *reader) {
		var p structs.PortRequest
		r.label("name", &p.Name)
		r.whole("static", &p.Static, 1)
		spec.Ports = append(spec.Ports, p)
	})
	return spec
}

func (r *reader) device() structs.DeviceRequest {
	var d structs.DeviceRequest
	r.label("kind", &d.Kind)
	r.count("count", &d.Count)
	text(r, "model", &d.Model)
	r.words("models", &d.Models)
	r.size("memory", &d.Memory, 0)
	r.words("ids", &d.IDs)
	return d
}

func (r *reader) placement(p *structs.Placement) {
	r.noLabels()
	text(r, "pool", &p.Pool)
	r.words("nodes", &p.Nodes)
	text(r, "driver_version", &p.DriverVersion)
	text(r, "spread_or_pack", &p.SpreadOrPack)
}

func (r *reader) vip(job *structs.Job) {
	r.noLabels()
	job.VIP = &structs.VIP{}
	r.every("machine", indexedIn("vip.machine"), func(r *reader) {
		var m structs.VIPMachine
		r.label("node", &m.Node)
		text(r, "busy", &m.Busy)
		job.VIP.Machines = append(job.VIP.Machines, m)
	})
}

func (r *reader) task(t *structs.Task) {
	r.noLabels()
	text(r, "driver", &t.Driver)
	text(r, "image", &t.Image)
	text(r, "pull", &t.Pull)
	text(r, "command", &t.Command)
	text(r, "arguments", &t.Arguments)
	r.place("dir", &t.Dir)
	text(r, "user", &t.User)
	r.table("env", &t.Env)
	r.table("ulimits", &t.Ulimits)
	r.table("options", &t.Options)
	r.every("hook", indexedIn("task.hook"), func(r *reader) {
		var hook structs.Hook
		r.label("when", &hook.When)
		text(r, "command", &hook.Command)
		r.span("timeout", &hook.Timeout, 0)
		t.Hooks = append(t.Hooks, hook)
	})
	r.single("logs", func(r *reader) {
		r.noLabels()
		t.Logs = &structs.LogPolicy{}
		r.size("file_size_max", &t.Logs.FileSizeMax, structs.LogFileMin)
		r.whole("files", &t.Logs.Files, 1)
	})
}

// data reads what the job mounts.
func (r *reader) data(job *structs.Job) {
	for _, kind := range []struct {
		name string
		into *[]structs.DataRef
	}{
		{"algorithm", &job.Algorithms}, {"dataset", &job.Datasets}, {"model", &job.Models}, {"volume", &job.Volumes},
	} {
		r.every(kind.name, indexedIn(kind.name), func(r *reader) {
			var ref structs.DataRef
			r.label("name", &ref.Name)
			r.whole("version", &ref.Version, 1)
			r.flag("read_only", &ref.ReadOnly)
			r.flag("prepare", &ref.Prepare)
			text(r, "from", &ref.From)
			text(r, "storage", &ref.Storage)
			r.flag("annotations", &ref.Annotations)
			text(r, "source", &ref.Source)
			text(r, "sha256", &ref.SHA256)
			*kind.into = append(*kind.into, ref)
		})
	}
	r.every("mount", indexedIn("mount"), func(r *reader) {
		var m structs.Mount
		r.label("target", &m.Target)
		r.place("source", &m.Source)
		text(r, "storage", &m.Storage)
		r.flag("read_only", &m.ReadOnly)
		job.Mounts = append(job.Mounts, m)
	})
	r.single("output", func(r *reader) {
		text(r, "storage", &job.OutputStorage)
		label, ok := r.oneLabel()
		if !ok {
			return
		}
		job.Output = label
		r.p.places.note("output", r.block.LabelRanges[0])
	})
}

// timeLimit reads the limit, or the block of the limit and its warning.
func (r *reader) timeLimit(job *structs.Job) {
	said := job.TimeLimit
	r.span("time_limit", &said, 0)
	r.single("time_limit", func(inner *reader) {
		inner.noLabels()
		if attribute, both := r.block.Body.Attributes["time_limit"]; both {
			r.p.fail(r.p.root, attribute.NameRange, "jobspec.block_twice", "", "name", "time_limit", "before", r.p.root.src.rangeOf(inner.block.TypeRange).Start.Line)
		}
		job.LimitWarning = &structs.LimitWarning{}
		inner.span("limit", &said, 0)
		inner.span("warn", &job.LimitWarning.Before, least)
		text(inner, "signal", &job.LimitWarning.Signal)
	})
	job.TimeLimit = said
}

// recovery reads what happens after faults.
func (r *reader) recovery(job *structs.Job) {
	r.single("restart", func(r *reader) {
		r.noLabels()
		job.Restart = &structs.Restart{}
		r.whole("max_restarts", &job.Restart.MaxRestarts, 0)
		r.span("delay", &job.Restart.Delay, 0)
	})
	r.single("checkpoint", func(r *reader) {
		r.noLabels()
		c := &structs.Checkpoint{}
		job.Checkpoint = c
		r.whole("max_resumes", &c.MaxResumes, 0)
		text(r, "signal", &c.Signal)
		r.span("grace", &c.Grace, least)
		r.flag("precheck", &c.Precheck)
		r.place("dir", &c.Dir)
		text(r, "pattern", &c.Pattern)
		r.single("elastic", func(r *reader) {
			r.noLabels()
			c.Elastic = &structs.Elastic{}
			r.whole("min_nodes", &c.Elastic.MinNodes, 0)
			r.flag("allow_resize", &c.Elastic.AllowResize)
		})
		r.single("performance", func(r *reader) {
			r.noLabels()
			c.Performance = &structs.Performance{}
			r.fraction("threshold", &c.Performance.Threshold, 0)
			text(r, "action", &c.Performance.Action)
			text(r, "compare", &c.Performance.Compare)
			text(r, "pattern", &c.Performance.Pattern)
			r.whole("times", &c.Performance.Times, 1)
		})
	})
	r.single("hang", func(r *reader) {
		r.noLabels()
		h := &structs.Hang{}
		job.Hang = h
		text(r, "action", &h.Action)
		r.fraction("factor", &h.Factor, 1)
		r.span("least", &h.Least, least)
		r.span("most", &h.Most, least)
		text(r, "pattern", &h.Pattern)
	})
}

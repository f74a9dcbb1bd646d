package jobspec

import (
	"time"

	"nomadlike/nomadlike/structs"
)

// least is the smallest span where none would mean the default.
const least = structs.Duration(time.Millisecond)

// walkJob goes over what an author writes of a job.
func walkJob(v visitor, job *structs.Job) {
	v.label("name", &job.Name, false)
	v.argument("project", text(&job.Project))
	v.argument("type", text((*string)(&job.Type)))
	v.argument("category", text(&job.Category))
	v.argument("description", text(&job.Description))
	v.argument("priority", text((*string)(&job.Priority)))
	v.argument("preemptible", flag(&job.Preemptible))
	v.argument("access", text(&job.Access))
	v.argument("time_limit", span(&job.TimeLimit, 0).unless(job.LimitWarning != nil))
	v.argument("expected_runtime", span(&job.ExpectedRuntime, 0))
	v.argument("begin", text(&job.Begin))
	v.argument("deadline", text(&job.Deadline))
	v.argument("max_queue_time", span(&job.MaxQueueTime, least))
	v.argument("nodes", whole(&job.Nodes, 1))
	v.argument("stop_grace", span(&job.StopGrace, least))
	v.argument("fencing", text(&job.Fencing))
	v.argument("ssh", flag(&job.SSH))
	v.argument("jupyter", flag(&job.Jupyter))
	v.argument("tags", words(&job.Tags))
	v.argument("note", text(&job.Note))
	v.argument("workdir", directory(&job.Workdir).unless(fromRepository(job.Workdir)))
	v.argument("meta", table(&job.Meta))
	single(v, "time_limit", &job.LimitWarning, func(v visitor, w *structs.LimitWarning) {
		v.argument("limit", span(&job.TimeLimit, 0))
		v.argument("warn", span(&w.Before, least))
		v.argument("signal", text(&w.Signal))
	})
	every(v, "after", &job.After, func(v visitor, a *structs.After) {
		v.label("job", &a.Job, false)
		v.argument("when", text(&a.When))
		v.argument("project", text(&a.Project))
	})
	walkRepository(v, job)
	single(v, "batch", &job.Batch, walkBatch)
	single(v, "sweep", &job.Sweep, walkSweep)
	named(v, "distributed", "mode", (*string)(&job.Distributed.Mode), func(v visitor) { walkDistributed(v, &job.Distributed) })
	every(v, "resources", &job.Resources, walkResources)
	always(v, "placement", &job.Placement, walkPlacement)
	single(v, "vip", &job.VIP, func(v visitor, vip *structs.VIP) {
		every(v, "machine", &vip.Machines, func(v visitor, m *structs.VIPMachine) {
			v.label("node", &m.Node, false)
			v.argument("busy", text(&m.Busy))
		})
		single(v, "ask", &vip.Ask, func(v visitor, a *structs.VIPAsk) {
			v.argument("for", span(&a.For, 0))
			v.argument("silence", text(&a.Silence))
			v.argument("message", text(&a.Message))
		})
	})
	always(v, "task", &job.Task, walkTask)
	walkData(v, job)
	single(v, "restart", &job.Restart, func(v visitor, r *structs.Restart) {
		v.argument("max_restarts", said(&r.MaxRestarts))
		v.argument("delay", span(&r.Delay, 0))
	})
	single(v, "hang", &job.Hang, walkHang)
	single(v, "elastic", &job.Elastic, func(v visitor, e *structs.Elastic) {
		v.argument("min_nodes", whole(&e.MinNodes, 0))
		v.argument("by", text((*string)(&e.By)))
		v.argument("allow_resize", flag(&e.AllowResize))
	})
	single(v, "checkpoint", &job.Checkpoint, walkCheckpoint)
	single(v, "supports", &job.Supports, func(v visitor, s *structs.Supports) {
		v.argument("pause", maybe(&s.Pause))
		v.argument("throttle", maybe(&s.Throttle))
		v.argument("finish_now", maybe(&s.FinishNow))
		v.argument("resume", maybe(&s.Resume))
	})
	single(v, "throttle", &job.Throttle, func(v visitor, t *structs.Throttle) {
		v.argument("idle", span(&t.Idle, 0))
		v.argument("busy", span(&t.Busy, least))
	})
	single(v, "debug", &job.Debug, func(v visitor, d *structs.Debug) { v.argument("hold", span(&d.Hold, 0)) })
	single(v, "notify", &job.Notify, walkNotify)
	single(v, "tensorboard", &job.Tensorboard, func(v visitor, t *structs.Tensorboard) { v.argument("logdir", place(&t.LogDir)) })
	single(v, "metrics", &job.Metrics, func(v visitor, m *structs.Metrics) {
		v.argument("patterns", words(&m.Patterns))
		v.argument("events", place(&m.Events))
	})
}

func walkNotify(v visitor, n *structs.JobNotify) {
	v.argument("on", words(&n.On))
	v.argument("to", text(&n.To))
}

func walkBatch(v visitor, b *structs.Batch) {
	v.argument("array", text(&b.Array))
	v.argument("count", whole(&b.Count, 1))
	v.argument("parallel", whole(&b.Parallel, 1))
	every(v, "subtask", &b.Subtasks, func(v visitor, s *structs.BatchSubtask) {
		v.label("name", &s.Name, false)
		v.argument("algorithm", text(&s.Algorithm))
		v.argument("command", spoken(&s.Command))
		v.argument("env", table(&s.Env))
	})
}

func walkSweep(v visitor, s *structs.Sweep) {
	v.label("method", &s.Method, false)
	every(v, "param", &s.Params, func(v visitor, p *structs.SweepParam) {
		v.label("name", &p.Name, false)
		v.argument("values", words(&p.Values))
		v.argument("int", words(&p.Int))
		v.argument("double", words(&p.Double))
		v.argument("log", words(&p.Log))
		v.argument("count", whole(&p.Count, 1))
	})
	v.argument("max_trials", whole(&s.MaxTrials, 1))
	v.argument("parallel", whole(&s.Parallel, 1))
	v.argument("metric", text(&s.Metric))
	v.argument("goal", text(&s.Goal))
	v.argument("seed", whole(&s.Seed, 0))
	v.argument("args", text(&s.Args))
}

func walkDistributed(v visitor, d *structs.Distributed) {
	v.argument("world_size", text(&d.WorldSize))
	v.argument("rewrite", text(&d.Rewrite))
	v.argument("launcher", text(&d.Launcher))
	v.argument("procs_per_node", whole(&d.ProcsPerNode, 1))
	v.argument("master_port", whole(&d.MasterPort, 1))
	v.argument("parameter_servers", whole(&d.ParameterServers, 0))
	v.argument("chief", flag(&d.Chief))
	v.argument("rank_table", text(&d.RankTable))
	v.argument("emulate", text(&d.Emulate))
}

func walkResources(v visitor, r *structs.Resources) {
	v.label("label", &r.Label, true)
	v.argument("cpu", fraction(&r.CPU, structs.CPUMin))
	v.argument("memory", size(&r.Memory, structs.MemoryMin))
	v.argument("shared_memory", size(&r.SharedMemory, 0))
	v.argument("disk", size(&r.Disk, structs.DiskMin))
	v.argument("sku", whole(&r.SKU, 1))
	v.argument("rdma", flag(&r.RDMA))
	every(v, "device", &r.Devices, walkDevice)
	every(v, "port", &r.Ports, func(v visitor, p *structs.PortRequest) {
		v.label("name", &p.Name, false)
		v.argument("static", whole(&p.Static, 1))
	})
}

func walkDevice(v visitor, d *structs.DeviceRequest) {
	v.label("kind", &d.Kind, false)
	v.argument("count", count(&d.Count))
	v.argument("model", text(&d.Model))
	v.argument("models", words(&d.Models))
	v.argument("memory", size(&d.Memory, 0))
	v.argument("ids", words(&d.IDs))
}

func walkPlacement(v visitor, p *structs.Placement) {
	v.argument("pool", text(&p.Pool))
	v.argument("nodes", words(&p.Nodes))
	v.argument("driver_version", text(&p.DriverVersion))
	v.argument("spread_or_pack", text(&p.SpreadOrPack))
}

func walkTask(v visitor, t *structs.Task) {
	v.argument("driver", text(&t.Driver))
	v.argument("image", text(&t.Image))
	v.argument("image_credentials", secretAlone(&t.Secrets))
	v.argument("pull", text(&t.Pull))
	v.argument("command", spoken(&t.Command))
	v.argument("arguments", spoken(&t.Arguments))
	v.argument("dir", place(&t.Dir))
	v.argument("user", text(&t.User))
	v.argument("env", environment(&t.Env, &t.Secrets))
	v.argument("secrets", secretFiles(&t.Secrets))
	v.argument("ulimits", table(&t.Ulimits))
	v.argument("options", table(&t.Options))
	every(v, "hook", &t.Hooks, func(v visitor, h *structs.Hook) {
		v.label("when", &h.When, false)
		v.argument("command", text(&h.Command))
		v.argument("timeout", span(&h.Timeout, 0))
	})
	single(v, "logs", &t.Logs, func(v visitor, l *structs.LogPolicy) {
		v.argument("file_size_max", size(&l.FileSizeMax, structs.LogFileMin))
		v.argument("files", whole(&l.Files, 1))
	})
}

// walkData goes over what the job mounts.
func walkData(v visitor, job *structs.Job) {
	every(v, "algorithm", &job.Algorithms, walkDataRef)
	every(v, "dataset", &job.Datasets, walkDataRef)
	every(v, "model", &job.Models, walkDataRef)
	every(v, "volume", &job.Volumes, walkDataRef)
	every(v, "mount", &job.Mounts, func(v visitor, m *structs.Mount) {
		v.label("target", &m.Target, false)
		v.argument("source", place(&m.Source))
		v.argument("storage", text(&m.Storage))
		v.argument("read_only", flag(&m.ReadOnly))
	})
	named(v, "output", "", &job.Output, func(v visitor) {
		v.argument("storage", text(&job.OutputStorage))
		single(v, "keep", &job.OutputKeep, func(v visitor, k *structs.OutputKeep) {
			v.label("as", &k.As, false)
			v.argument("name", text(&k.Name))
			v.argument("when", text(&k.When))
			v.argument("path", text(&k.Path))
		})
	})
}

func walkDataRef(v visitor, ref *structs.DataRef) {
	v.label("name", &ref.Name, false)
	v.argument("version", whole(&ref.Version, 1))
	v.argument("read_only", flag(&ref.ReadOnly))
	v.argument("prepare", flag(&ref.Prepare))
	v.argument("from", text(&ref.From))
	v.argument("storage", text(&ref.Storage))
	v.argument("annotations", flag(&ref.Annotations))
	v.argument("source", text(&ref.Source))
	v.argument("sha256", text(&ref.SHA256))
	v.argument("project", text(&ref.Project))
	v.argument("tag", text(&ref.Tag))
}

func walkHang(v visitor, h *structs.Hang) {
	v.argument("action", text(&h.Action))
	v.argument("factor", fraction(&h.Factor, 1))
	v.argument("least", span(&h.Least, least))
	v.argument("most", span(&h.Most, least))
	v.argument("pattern", text(&h.Pattern))
}

func walkCheckpoint(v visitor, c *structs.Checkpoint) {
	v.argument("max_resumes", whole(&c.MaxResumes, 0))
	v.argument("signal", text(&c.Signal))
	v.argument("grace", span(&c.Grace, least))
	v.argument("precheck", flag(&c.Precheck))
	v.argument("dir", place(&c.Dir))
	v.argument("pattern", text(&c.Pattern))
	single(v, "performance", &c.Performance, func(v visitor, p *structs.Performance) {
		v.argument("threshold", fraction(&p.Threshold, 0))
		v.argument("action", text(&p.Action))
		v.argument("compare", text(&p.Compare))
		v.argument("pattern", text(&p.Pattern))
		v.argument("times", whole(&p.Times, 1))
	})
}

package jobspec

import (
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"nomadlike/nomadlike/structs"
)

// Write renders a job as a job file: what Parse makes of it, with the same
// name, is the same job. Variables, locals and functions of the file that the
// job came from are gone, their values are written out; so anybody can change
// and submit it again. What was fixed at admission is left out. Pure; any
// goroutine may call it.
func Write(job *structs.Job) []byte {
	file := hclwrite.NewEmptyFile()
	w := writer{file.Body().AppendNewBlock("job", []string{job.Name}).Body()}
	w.job(job)
	return hclwrite.Format(file.Bytes())
}

// writer writes the arguments and blocks of one body. Values that mean "not
// said" are left out.
type writer struct{ body *hclwrite.Body }

func put[T ~string](w writer, name string, value T) {
	if value != "" {
		w.body.SetAttributeValue(name, cty.StringVal(string(value)))
	}
}

func (w writer) whole(name string, value int) {
	if value != 0 {
		w.body.SetAttributeValue(name, cty.NumberIntVal(int64(value)))
	}
}

func (w writer) fraction(name string, value float64) {
	if value != 0 {
		w.body.SetAttributeValue(name, cty.NumberFloatVal(value))
	}
}

func (w writer) flag(name string, value bool) {
	if value {
		w.body.SetAttributeValue(name, cty.True)
	}
}

// maybe writes a flag that is said.
func (w writer) maybe(name string, value *bool) {
	if value != nil {
		w.body.SetAttributeValue(name, cty.BoolVal(*value))
	}
}

func (w writer) size(name string, bytes int64) {
	if bytes != 0 {
		put(w, name, structs.FormatSize(bytes))
	}
}

func (w writer) span(name string, value structs.Duration) {
	if value != 0 {
		put(w, name, structs.FormatDuration(value))
	}
}

func (w writer) words(name string, words []string) {
	if len(words) == 0 {
		return
	}
	values := make([]cty.Value, len(words))
	for i, word := range words {
		values[i] = cty.StringVal(word)
	}
	w.body.SetAttributeValue(name, cty.TupleVal(values))
}

// table writes an object, one entry a line. Keys that are no identifiers are
// quoted.
func (w writer) table(name string, table map[string]string) {
	if len(table) == 0 {
		return
	}
	w.body.SetAttributeRaw(name, tableTokens(table))
}

func tableTokens(table map[string]string) hclwrite.Tokens {
	entries := make([]hclwrite.ObjectAttrTokens, 0, len(table))
	for _, key := range slices.Sorted(maps.Keys(table)) {
		quoted := hclwrite.TokensForValue(cty.StringVal(key))
		if hclsyntax.ValidIdentifier(key) {
			quoted = hclwrite.TokensForIdentifier(key)
		}
		entries = append(entries, hclwrite.ObjectAttrTokens{Name: quoted, Value: hclwrite.TokensForValue(cty.StringVal(table[key]))})
	}
	return hclwrite.TokensForObject(entries)
}

// block begins a block after an empty line.
func (w writer) block(name string, labels ...string) writer {
	if len(w.body.Attributes())+len(w.body.Blocks()) > 0 {
		w.body.AppendNewline()
	}
	return writer{w.body.AppendNewBlock(name, labels).Body()}
}

func (w writer) job(job *structs.Job) {
	put(w, "project", job.Project)
	put(w, "type", job.Type)
	put(w, "category", job.Category)
	put(w, "description", job.Description)
	put(w, "priority", job.Priority)
	w.flag("preemptible", job.Preemptible)
	put(w, "access", job.Access)
	if job.LimitWarning == nil {
		w.span("time_limit", job.TimeLimit)
	}
	w.span("expected_runtime", job.ExpectedRuntime)
	w.whole("nodes", job.Nodes)
	w.span("stop_grace", job.StopGrace)
	put(w, "fencing", job.Fencing)
	w.flag("ssh", job.SSH)
	w.flag("jupyter", job.Jupyter)
	w.table("meta", job.Meta)
	if l := job.LimitWarning; l != nil {
		inner := w.block("time_limit")
		inner.span("limit", job.TimeLimit)
		inner.span("warn", l.Before)
		put(inner, "signal", l.Signal)
	}
	if job.Batch != nil {
		w.block("batch").batch(job.Batch)
	}
	if job.Distributed.Mode != "" {
		w.block("distributed", string(job.Distributed.Mode)).distributed(&job.Distributed)
	}
	for i := range job.Resources {
		var label []string
		if job.Resources[i].Label != "" {
			label = []string{job.Resources[i].Label}
		}
		w.block("resources", label...).resources(&job.Resources[i])
	}
	w.placement(job)
	w.block("task").task(&job.Task)
	w.data(job)
	w.recovery(job)
	if s := job.Supports; s != nil {
		inner := w.block("supports")
		inner.maybe("pause", s.Pause)
		inner.maybe("throttle", s.Throttle)
		inner.maybe("finish_now", s.FinishNow)
		inner.maybe("resume", s.Resume)
	}
	if t := job.Throttle; t != nil {
		inner := w.block("throttle")
		inner.span("keep", t.Keep)
		inner.span("busy", t.Busy)
	}
	if job.Debug != nil {
		w.block("debug").span("hold", job.Debug.Hold)
	}
	if job.Tensorboard != nil {
		put(w.block("tensorboard"), "logdir", job.Tensorboard.LogDir)
	}
	if job.Metrics != nil {
		inner := w.block("metrics")
		inner.words("patterns", job.Metrics.Patterns)
		put(inner, "events", job.Metrics.Events)
	}
}

func (w writer) batch(batch *structs.Batch) {
	w.whole("count", batch.Count)
	for i := range batch.Subtasks {
		s := &batch.Subtasks[i]
		inner := w.block("subtask", s.Name)
		put(inner, "algorithm", s.Algorithm)
		put(inner, "command", s.Command)
		inner.table("env", s.Env)
	}
}

func (w writer) distributed(d *structs.Distributed) {
	put(w, "world_size", d.WorldSize)
	put(w, "rewrite", d.Rewrite)
	put(w, "launcher", d.Launcher)
	w.whole("procs_per_node", d.ProcsPerNode)
	w.whole("master_port", d.MasterPort)
	w.whole("parameter_servers", d.ParameterServers)
	w.flag("chief", d.Chief)
	w.whole("min_nodes", d.MinNodes)
	put(w, "rank_table", d.RankTable)
	put(w, "emulate", d.Emulate)
}

func (w writer) resources(spec *structs.Resources) {
	w.fraction("cpu", spec.CPU)
	w.size("memory", spec.Memory)
	w.size("shared_memory", spec.SharedMemory)
	w.size("disk", spec.Disk)
	w.whole("sku", spec.SKU)
	w.flag("rdma", spec.RDMA)
	for i := range spec.Devices {
		d := &spec.Devices[i]
		inner := w.block("device", d.Kind)
		if d.Count == structs.DevicesAll {
			put(inner, "count", countAll)
		} else {
			inner.whole("count", d.Count)
		}
		put(inner, "model", d.Model)
		inner.words("models", d.Models)
		inner.size("memory", d.Memory)
		inner.words("ids", d.IDs)
	}
	for _, p := range spec.Ports {
		w.block("port", p.Name).whole("static", p.Static)
	}
}

func (w writer) placement(job *structs.Job) {
	if p := job.Placement; p.Pool != "" || len(p.Nodes) > 0 || p.DriverVersion != "" || p.SpreadOrPack != "" {
		inner := w.block("placement")
		put(inner, "pool", p.Pool)
		inner.words("nodes", p.Nodes)
		put(inner, "driver_version", p.DriverVersion)
		put(inner, "spread_or_pack", p.SpreadOrPack)
	}
	if job.VIP != nil {
		inner := w.block("vip")
		for _, machine := range job.VIP.Machines {
			put(inner.block("machine", machine.Node), "busy", machine.Busy)
		}
	}
}

func (w writer) task(t *structs.Task) {
	put(w, "driver", t.Driver)
	put(w, "image", t.Image)
	put(w, "pull", t.Pull)
	put(w, "command", t.Command)
	put(w, "arguments", t.Arguments)
	put(w, "dir", t.Dir)
	put(w, "user", t.User)
	w.table("env", t.Env)
	w.table("ulimits", t.Ulimits)
	w.table("options", t.Options)
	for _, hook := range t.Hooks {
		inner := w.block("hook", hook.When)
		put(inner, "command", hook.Command)
		inner.span("timeout", hook.Timeout)
	}
	if t.Logs != nil {
		inner := w.block("logs")
		inner.size("file_size_max", t.Logs.FileSizeMax)
		inner.whole("files", t.Logs.Files)
	}
}

func (w writer) data(job *structs.Job) {
	for _, kind := range []struct {
		name string
		refs []structs.DataRef
	}{
		{"algorithm", job.Algorithms}, {"dataset", job.Datasets}, {"model", job.Models}, {"volume", job.Volumes},
	} {
		for _, ref := range kind.refs {
			inner := w.block(kind.name, ref.Name)
			inner.whole("version", ref.Version)
			inner.flag("read_only", ref.ReadOnly)
			inner.flag("prepare", ref.Prepare)
			put(inner, "from", ref.From)
			put(inner, "storage", ref.Storage)
			inner.flag("annotations", ref.Annotations)
			put(inner, "source", ref.Source)
			put(inner, "sha256", ref.SHA256)
		}
	}
	for _, m := range job.Mounts {
		inner := w.block("mount", m.Target)
		put(inner, "source", m.Source)
		put(inner, "storage", m.Storage)
		inner.flag("read_only", m.ReadOnly)
	}
	if job.Output != "" {
		put(w.block("output", job.Output), "storage", job.OutputStorage)
	}
}

func (w writer) recovery(job *structs.Job) {
	if r := job.Restart; r != nil {
		inner := w.block("restart")
		inner.body.SetAttributeValue("max_restarts", cty.NumberIntVal(int64(r.MaxRestarts))) // 0 is said
		inner.span("delay", r.Delay)
	}
	if h := job.Hang; h != nil {
		inner := w.block("hang")
		put(inner, "action", h.Action)
		inner.fraction("factor", h.Factor)
		inner.span("least", h.Least)
		inner.span("most", h.Most)
		put(inner, "pattern", h.Pattern)
	}
	c := job.Checkpoint
	if c == nil {
		return
	}
	w = w.block("checkpoint")
	w.whole("max_resumes", c.MaxResumes)
	put(w, "signal", c.Signal)
	w.span("grace", c.Grace)
	w.flag("precheck", c.Precheck)
	put(w, "dir", c.Dir)
	put(w, "pattern", c.Pattern)
	if e := c.Elastic; e != nil {
		inner := w.block("elastic")
		inner.whole("min_nodes", e.MinNodes)
		inner.flag("allow_resize", e.AllowResize)
	}
	if p := c.Performance; p != nil {
		inner := w.block("performance")
		inner.fraction("threshold", p.Threshold)
		put(inner, "action", p.Action)
		put(inner, "compare", p.Compare)
		put(inner, "pattern", p.Pattern)
		inner.whole("times", p.Times)
	}
}

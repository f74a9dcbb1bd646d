package jobspec

import (
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"nomadlike/nomadlike/structs"
)

// ParsePool reads a file with one pool block, with the rules and diagnostics of
// Parse: variables, locals and functions work as in a job file. The pool is
// valid when there are no errors, nil otherwise.
func ParsePool(filename string, src []byte, opts Options) (*structs.Pool, *SourceMap, Diagnostics) {
	p := newParser(opts)
	pool := &structs.Pool{}
	diags := p.read(filename, src, topBlock{"pool", "jobspec.pool_missing", "jobspec.pool_twice"}, func(block *hclsyntax.Block) {
		p.readPool(block, pool)
		p.problems(pool.Validate())
	})
	if p.errors > 0 {
		return nil, nil, diags
	}
	return pool, p.places, diags
}

func (p *parser) readPool(block *hclsyntax.Block, pool *structs.Pool) {
	r := p.reader(block, "pool", "")
	p.places.note("", block.DefRange())
	r.label("name", &pool.Name)
	text(r, "description", &pool.Description)
	r.words("nodes", &pool.Nodes)
	r.table("constraints", &pool.Constraints)
	r.flag("dedicated", &pool.Dedicated)
	var rdma *bool
	if r.maybe("rdma", &rdma); rdma != nil {
		pool.RDMA, pool.NoRDMA = *rdma, !*rdma
	}
	r.flag("raw", &pool.Raw)
	text(r, "order", &pool.Order)
	r.span("half_life", &pool.HalfLife, 0)
	r.fraction("age_weight", &pool.AgeWeight, 0)
	r.single("exec", func(r *reader) {
		r.noLabels()
		pool.Exec = &structs.PoolExec{}
		r.flag("root", &pool.Exec.Root)
		r.table("users", &pool.Exec.Users)
		r.table("projects", &pool.Exec.Projects)
	})
	r.single("sku", func(r *reader) {
		r.noLabels()
		pool.SKU = &structs.SKU{}
		r.fraction("cpu", &pool.SKU.CPU, 0)
		r.size("memory", &pool.SKU.Memory, 0)
		r.every("device", indexedIn("sku.device"), func(r *reader) {
			pool.SKU.Devices = append(pool.SKU.Devices, r.device())
		})
	})
	r.single("defaults", func(r *reader) {
		r.noLabels()
		r.span("time_limit", &pool.Defaults.TimeLimit, 0)
		text(r, "priority", &pool.Defaults.Priority)
		r.span("hold", &pool.Defaults.Hold, 0)
		r.taskDefaults(&pool.Defaults.Task)
	})
	r.single("floors", func(r *reader) {
		r.noLabels()
		r.whole("sku", &pool.Floors.SKU, 0)
		r.fraction("cpu", &pool.Floors.CPU, 0)
		r.size("memory", &pool.Floors.Memory, 0)
		r.whole("devices", &pool.Floors.Devices, 0)
	})
	r.single("ceilings", func(r *reader) {
		r.noLabels()
		r.span("time_limit", &pool.Ceilings.TimeLimit, 0)
		r.whole("nodes", &pool.Ceilings.Nodes, 0)
		r.whole("devices", &pool.Ceilings.Devices, 0)
		r.whole("max_resumes", &pool.Ceilings.MaxResumes, 0)
		r.span("grace", &pool.Ceilings.Grace, 0)
		r.span("hold", &pool.Ceilings.Hold, 0)
		r.flag("no_checkpoint", &pool.Ceilings.NoCheckpoint)
	})
	r.finish()
}

// taskDefaults reads what a record gives to tasks.
func (r *reader) taskDefaults(t *structs.TaskDefaults) {
	r.table("env", &t.Env)
	text(r, "arguments", &t.Arguments)
}

// ParseProject is ParsePool for a file with one project block.
func ParseProject(filename string, src []byte, opts Options) (*structs.Project, *SourceMap, Diagnostics) {
	p := newParser(opts)
	project := &structs.Project{}
	diags := p.read(filename, src, topBlock{"project", "jobspec.project_missing", "jobspec.project_twice"}, func(block *hclsyntax.Block) {
		p.readProject(block, project)
		p.problems(project.Validate())
	})
	if p.errors > 0 {
		return nil, nil, diags
	}
	return project, p.places, diags
}

func (p *parser) readProject(block *hclsyntax.Block, project *structs.Project) {
	r := p.reader(block, "project", "")
	p.places.note("", block.DefRange())
	r.label("name", &project.Name)
	text(r, "description", &project.Description)
	r.words("members", &project.Members)
	r.fraction("weight", &project.Weight, 0)
	r.wholeOrNone("urgent_limit", &project.UrgentLimit)
	r.every("quota", indexedIn("quota"), func(r *reader) {
		var q structs.Quota
		r.label("kind", &q.Kind)
		text(r, "model", &q.Model)
		r.whole("guaranteed", &q.Guaranteed, 0)
		r.wholeOrNone("maximum", &q.Maximum)
		project.Quotas = append(project.Quotas, q)
	})
	r.single("defaults", func(r *reader) {
		r.noLabels()
		r.taskDefaults(&project.Defaults)
	})
	r.finish()
}

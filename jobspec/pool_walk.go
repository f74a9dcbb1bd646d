package jobspec

import "nomadlike/nomadlike/structs"

// walkPool goes over what an administrator writes of a pool.
func walkPool(v visitor, pool *structs.Pool) {
	v.label("name", &pool.Name, false)
	v.argument("description", text(&pool.Description))
	v.argument("nodes", words(&pool.Nodes))
	v.argument("constraints", table(&pool.Constraints))
	v.argument("dedicated", flag(&pool.Dedicated))
	v.argument("rdma", either(&pool.RDMA, &pool.NoRDMA))
	v.argument("raw", flag(&pool.Raw))
	v.argument("order", text((*string)(&pool.Order)))
	v.argument("half_life", span(&pool.HalfLife, 0))
	v.argument("age_weight", fraction(&pool.AgeWeight, 0))
	single(v, "exec", &pool.Exec, func(v visitor, e *structs.PoolExec) {
		v.argument("root", flag(&e.Root))
		v.argument("users", table(&e.Users))
		v.argument("projects", table(&e.Projects))
	})
	single(v, "sku", &pool.SKU, func(v visitor, s *structs.SKU) {
		v.argument("cpu", fraction(&s.CPU, 0))
		v.argument("memory", size(&s.Memory, 0))
		every(v, "device", &s.Devices, walkDevice)
	})
	always(v, "defaults", &pool.Defaults, func(v visitor, d *structs.PoolDefaults) {
		v.argument("time_limit", span(&d.TimeLimit, 0))
		v.argument("priority", text((*string)(&d.Priority)))
		v.argument("hold", span(&d.Hold, 0))
		walkTaskDefaults(v, &d.Task)
	})
	always(v, "floors", &pool.Floors, func(v visitor, f *structs.PoolFloors) {
		v.argument("sku", whole(&f.SKU, 0))
		v.argument("cpu", fraction(&f.CPU, 0))
		v.argument("memory", size(&f.Memory, 0))
		v.argument("devices", whole(&f.Devices, 0))
	})
	always(v, "ceilings", &pool.Ceilings, walkCeilings)
}

// walkCeilings goes over the most that a record lets jobs ask for.
func walkCeilings(v visitor, c *structs.PoolCeilings) {
	v.argument("time_limit", span(&c.TimeLimit, 0))
	v.argument("nodes", whole(&c.Nodes, 0))
	v.argument("devices", whole(&c.Devices, 0))
	v.argument("max_resumes", whole(&c.MaxResumes, 0))
	v.argument("grace", span(&c.Grace, 0))
	v.argument("hold", span(&c.Hold, 0))
	v.argument("no_checkpoint", flag(&c.NoCheckpoint))
}

// walkTaskDefaults goes over what a record sets for tasks.
func walkTaskDefaults(v visitor, t *structs.TaskDefaults) {
	v.argument("env", table(&t.Env))
	v.argument("arguments", text(&t.Arguments))
}

// walkProject goes over what an administrator writes of a project.
func walkProject(v visitor, project *structs.Project) {
	v.label("name", &project.Name, false)
	v.argument("description", text(&project.Description))
	v.argument("members", words(&project.Members))
	v.argument("admins", words(&project.Admins))
	v.argument("viewers", words(&project.Viewers))
	v.argument("weight", fraction(&project.Weight, 0))
	v.argument("urgent_limit", wholeOrNone(&project.UrgentLimit))
	v.argument("no_sharing", flag(&project.NoSharing))
	v.argument("data_quota", size(&project.DataQuota, 0))
	v.argument("code_max", size(&project.CodeMax, structs.CodeMaxLeast))
	every(v, "quota", &project.Quotas, func(v visitor, q *structs.Quota) {
		v.label("kind", &q.Kind, false)
		v.argument("model", text(&q.Model))
		v.argument("guaranteed", whole(&q.Guaranteed, 0))
		v.argument("maximum", wholeOrNone(&q.Maximum))
	})
	always(v, "defaults", &project.Defaults, func(v visitor, t *structs.TaskDefaults) {
		d := &project.JobDefaults // two records, one block
		v.argument("pool", text(&d.Pool))
		v.argument("priority", text((*string)(&d.Priority)))
		v.argument("time_limit", span(&d.TimeLimit, 0))
		v.argument("image", text(&d.Image))
		v.argument("output_storage", text(&d.OutputStorage))
		single(v, "notify", &d.Notify, walkNotify)
		walkTaskDefaults(v, t)
	})
	always(v, "ceilings", &project.Ceilings, walkCeilings)
}

package structs

import "slices"

// Limits of one project.
const (
	ProjectMembersMax = 10_000
	ProjectQuotasMax  = 64
	WeightMax         = 1e6
	QuotaMax          = 100_000_000 // devices or cores
	UrgentLimitMax    = 1_000_000
)

// Validate lists everything that is wrong with a project's record, in the order
// of its fields; an empty list means that it may be stored. Pure.
func (p *Project) Validate() []Problem {
	v := &validator{}
	v.name("name", p.Name)
	v.text("description", p.Description, DescriptionMax)
	v.members(p)
	v.fraction("weight", p.Weight, WeightMax)
	v.quotas(p)
	if p.UrgentLimit != nil {
		v.integer("urgent_limit", *p.UrgentLimit, 0, UrgentLimitMax)
	}
	v.size("data_quota", p.DataQuota, 0, DataBytesMax)
	if p.CodeMax != 0 {
		v.size("code_max", p.CodeMax, CodeMaxLeast, CodeMaxMost)
	}
	v.jobDefaults(p)
	v.taskDefaults(&p.Defaults)
	v.ceilings(&p.Ceilings)
	return v.problems
}

// jobDefaults checks what a project sets for jobs, and that it is within the
// project's own ceilings.
func (v *validator) jobDefaults(p *Project) {
	d := &p.JobDefaults
	if d.Pool != "" {
		v.name("defaults.pool", d.Pool)
	}
	v.choice("defaults.priority", string(d.Priority), true, string(PriorityNormal), string(PriorityUrgent))
	v.span("defaults.time_limit", d.TimeLimit, 0, SpanMax)
	v.word("defaults.image", d.Image, WordMax)
	if d.OutputStorage != "" {
		v.name("defaults.output_storage", d.OutputStorage)
	}
	v.jobNotify("defaults.notify", d.Notify)
	if most := p.Ceilings.TimeLimit; most > 0 && d.TimeLimit > most {
		v.add("defaults.time_limit", "project.default_over", "", "value", FormatDuration(d.TimeLimit), "max", FormatDuration(most))
	}
}

// members checks the lists of who belongs to a project: together they are
// bounded, and nobody stands in two of them.
func (v *validator) members(p *Project) {
	if count := len(p.Members) + len(p.Admins) + len(p.Viewers); count > ProjectMembersMax {
		v.add("members", "job.too_many", "", "what", "members", "count", count, "max", ProjectMembersMax)
		return
	}
	seen := make(map[string]bool, len(p.Members))
	for _, list := range []struct {
		path  string
		names []string
	}{{"members", p.Members}, {"admins", p.Admins}, {"viewers", p.Viewers}} {
		for i, name := range list.names {
			path := IndexedPath(list.path, i)
			switch {
			case name == "":
				v.add(path, "job.missing", "")
			case v.word(path, name, WordMax) && seen[name]:
				v.add(path, "job.duplicate", "", "value", name)
			}
			seen[name] = true
		}
	}
}

func (v *validator) quotas(p *Project) {
	if len(p.Quotas) > ProjectQuotasMax {
		v.add("quota", "job.too_many", "", "what", "quota", "count", len(p.Quotas), "max", ProjectQuotasMax)
		return
	}
	for i := range p.Quotas {
		q, path := &p.Quotas[i], IndexedPath("quota", i)
		switch {
		case q.Kind == QuotaCPU && q.Model != "":
			v.add(path+".model", "project.quota_model", "", "model", q.Model)
		case q.Kind != QuotaCPU && !deviceKind(q.Kind):
			v.add(path+".kind", "project.quota_kind", "project.quota_kind.hint", "kind", q.Kind)
		case slices.ContainsFunc(p.Quotas[:i], func(other Quota) bool { return other.Kind == q.Kind && other.Model == q.Model }):
			v.add(path, "job.duplicate", "", "value", q.name())
		}
		if q.Guaranteed == 0 && q.Maximum == nil {
			v.add(path, "project.quota_empty", "project.quota_empty.hint")
		}
		v.word(path+".model", q.Model, WordMax)
		v.integer(path+".guaranteed", q.Guaranteed, 0, QuotaMax)
		if q.Maximum == nil {
			continue
		}
		if v.integer(path+".maximum", *q.Maximum, 0, QuotaMax) && *q.Maximum < q.Guaranteed {
			v.add(path+".maximum", "project.quota_maximum", "", "maximum", *q.Maximum, "guaranteed", q.Guaranteed)
		}
	}
}

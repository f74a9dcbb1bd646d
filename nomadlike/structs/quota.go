package structs

import (
	"maps"
	"slices"
	"strings"
)

// QuotaUsageOf is what a rank with the needs of spec counts in its project's quota
// when it gets the devices with the given ids on node.
func QuotaUsageOf(spec Resources, node *Node, devices []string) QuotaUsage {
	held := QuotaUsage{}
	held.AddRank(spec, node, devices)
	return held
}

// AddRank adds what a rank counts.
func (u QuotaUsage) AddRank(spec Resources, node *Node, devices []string) {
	u[QuotaCPU] += MilliCPU(spec.CPU)
	var last *Device
	alike := int64(0) // devices like the last
	for _, id := range devices {
		d := node.Device(id)
		if d == nil {
			continue
		}
		if last != nil && (d.Kind != last.Kind || d.Model != last.Model) {
			u[DeviceKey(last.Kind, last.Model)] += alike
			alike = 0
		}
		last = d
		alike++
	}
	if last != nil {
		u[DeviceKey(last.Kind, last.Model)] += alike
	}
}

// Add returns the sum of two usages, leaving both as they are.
func (u QuotaUsage) Add(more QuotaUsage) QuotaUsage { return u.plus(more, 1) }

// Sub returns what is left of u without less, leaving both as they are; kinds
// of which nothing is left are dropped.
func (u QuotaUsage) Sub(less QuotaUsage) QuotaUsage { return u.plus(less, -1) }

func (u QuotaUsage) plus(other QuotaUsage, sign int64) QuotaUsage {
	sum := maps.Clone(u)
	if sum == nil {
		sum = make(QuotaUsage, len(other))
	}
	for key, n := range other {
		if sum[key] += sign * n; sum[key] == 0 {
			delete(sum, key)
		}
	}
	return sum
}

// Of counts what a usage has of a quota's kind and model: devices, or
// thousandths of cores for QuotaCPU.
func (u QuotaUsage) Of(quota Quota) int64 {
	if quota.Kind == QuotaCPU {
		return u[QuotaCPU]
	}
	count := int64(0)
	for key, n := range u {
		model, ok := strings.CutPrefix(key, quota.Kind+"/")
		if ok && modelMatches(model, quota.Model) {
			count += n
		}
	}
	return count
}

// rules reports whether the quota guarantees or bounds anything.
func (q Quota) rules() bool { return q.Guaranteed != 0 || q.Maximum != nil }

// Guarantee is the quota's own share in the unit of QuotaUsage.Of.
func (q Quota) Guarantee() int64 { return q.unit(q.Guaranteed) }

// Most is the quota's bound in the unit of QuotaUsage.Of; false: none.
func (q Quota) Most() (int64, bool) {
	if q.Maximum == nil {
		return 0, false
	}
	return q.unit(*q.Maximum), true
}

func (q Quota) unit(n int) int64 {
	if q.Kind == QuotaCPU {
		return int64(n) * 1000
	}
	return int64(n)
}

// QuotaProblem reports which quota keeps a project from holding more on top of
// what it holds, or nil. Nil records bound nothing.
func QuotaProblem(project *Project, usage *ProjectUsage, more QuotaUsage) *Reason {
	if project == nil {
		return nil
	}
	for _, quota := range project.Quotas {
		most, bounded := quota.Most()
		asked := more.Of(quota)
		if !bounded || asked == 0 {
			continue
		}
		held := int64(0)
		if usage != nil {
			held = usage.QuotaUsage.Of(quota)
		}
		if held+asked > most {
			return NewReason("scheduler.quota", "project", project.Name, "kind", quota.name(),
				"need", quota.figure(asked), "held", quota.figure(held), "maximum", quota.figure(most))
		}
	}
	return nil
}

// name is the quota's kind with its model, for people.
func (q Quota) name() string {
	if q.Model == "" {
		return q.Kind
	}
	return q.Kind + " " + q.Model
}

// figure writes an amount in the quota's unit for people.
func (q Quota) figure(n int64) string {
	if q.Kind == QuotaCPU {
		return FormatMilliCPU(n)
	}
	return FormatCount(n)
}

// Borrows reports whether a project holds more of any kind in held than is
// guaranteed to it, so that a preemptible gang that holds it must yield to the
// owners. A project without a record has no guarantee and borrows nothing: see
// Outside.
func Borrows(project *Project, usage *ProjectUsage, held QuotaUsage) bool {
	if project == nil || usage == nil {
		return false
	}
	for _, quota := range project.Quotas {
		if quota.rules() && held.Of(quota) > 0 && usage.QuotaUsage.Of(quota) > quota.Guarantee() {
			return true
		}
	}
	return false
}

// Outside reports whether a project stands outside quotas: it has no record, or one
// that guarantees and bounds nothing. All that it holds is others' to reclaim, as
// far as it is guaranteed to them; it can reclaim nothing itself.
func Outside(project *Project) bool {
	return project == nil || !slices.ContainsFunc(project.Quotas, Quota.rules)
}

// Guarantees reports whether held has some of a kind that more asks for and that is
// guaranteed to a project.
func Guarantees(project *Project, more, held QuotaUsage) bool {
	return project != nil && slices.ContainsFunc(project.Quotas, func(quota Quota) bool {
		return quota.Guaranteed > 0 && more.Of(quota) > 0 && held.Of(quota) > 0
	})
}

// WithinGuarantee reports whether a project would hold no more of any kind than
// is guaranteed to it after taking more, and takes some of a kind that is.
func WithinGuarantee(project *Project, usage *ProjectUsage, more QuotaUsage) bool {
	if project == nil {
		return false
	}
	own := false
	for _, quota := range project.Quotas {
		asked := more.Of(quota)
		if asked == 0 || !quota.rules() {
			continue
		}
		held := int64(0)
		if usage != nil {
			held = usage.QuotaUsage.Of(quota)
		}
		if held+asked > quota.Guarantee() {
			return false
		}
		own = true
	}
	return own
}

package notify

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"nomadlike/nomadlike/structs"
)

// Condition is something that holds for a while. It is told when it begins to hold, and
// again only after it was surely over.
type Condition struct {
	Key     string // names it in the log
	Kind    string // structs.NotifyQuota or NotifyServers
	Project string // whose people are told; "" for the operators
	Event   string // message id of what holds
	Params  map[string]string
	// Lingers: it does not begin to hold by this, and is not over yet.
	Lingers bool
}

// Shares of a quota, in percent, at which it is nearly used, and below which it is not any
// more.
const (
	quotaNear = 90
	quotaOver = 80
)

// QuotaConditions lists the quotas of a project that are nearly used. Pure.
func QuotaConditions(project *structs.Project, usage *structs.ProjectUsage) []Condition {
	if project == nil || usage == nil || project.Gone() {
		return nil
	}
	var list []Condition
	for _, quota := range project.Quotas {
		most, bounded := quota.Most()
		held := usage.QuotaUsage.Of(quota)
		if !bounded || most <= 0 || held*100 < most*quotaOver {
			continue
		}
		kind := quota.Kind
		if quota.Model != "" {
			kind += " " + quota.Model
		}
		list = append(list, Condition{
			Key: conditionKey("quota", project.Name, quota.Kind, quota.Model), Kind: structs.NotifyQuota, Project: project.Name,
			Event:   "notify.what.quota",
			Params:  map[string]string{"project": project.Name, "kind": kind, "used": figure(quota, held), "max": figure(quota, most)},
			Lingers: held*100 < most*quotaNear,
		})
	}
	return list
}

// figure writes an amount of a quota's kind: cores with their thousandths.
func figure(quota structs.Quota, amount int64) string {
	if quota.Kind == structs.QuotaCPU {
		return strconv.FormatFloat(float64(amount)/1000, 'f', -1, 64)
	}
	return strconv.FormatInt(amount, 10)
}

// QuorumKey names the condition of the quorum.
const QuorumKey = "quorum"

// QuorumCondition is that the servers have no margin left: of three or more voters so many
// are away that none of the others may fail. nil where that is not so. Pure.
func QuorumCondition(voters, living int) *Condition {
	if voters < 3 || living > voters/2+1 {
		return nil
	}
	return &Condition{
		Key: QuorumKey, Kind: structs.NotifyServers, Event: "notify.what.quorum",
		Params: map[string]string{"voters": strconv.Itoa(voters), "living": strconv.Itoa(living)},
	}
}

// Certificate is one that ends: of an agent, or of the cluster's CA.
type Certificate struct {
	Name string // of the agent; "" for the CA
	ID   string // of the agent; the fingerprint of the CA
	Ends structs.UnixNano
	Away bool // the agent is away: it may renew its certificate when it is back
}

// caWarnings are how long before its end the CA's certificate is told of: somebody has to
// replace it.
var caWarnings = []time.Duration{24 * time.Hour, 7 * 24 * time.Hour, 30 * 24 * time.Hour}

// agentWarning is that of agents, which renew theirs in time, when they can.
const agentWarning = 24 * time.Hour

// CertificateConditions lists the certificates that end soon, the CA's once for each time
// before its end. Pure.
func CertificateConditions(certificates []Certificate, now structs.UnixNano) []Condition {
	var list []Condition
	for _, one := range certificates {
		left := one.Ends.Sub(now)
		params := map[string]string{"agent": one.Name, "until": one.Ends.Time().UTC().Format(time.RFC3339)}
		if one.Name != "" {
			if left < agentWarning {
				list = append(list, Condition{
					Key: conditionKey("certificate", one.ID), Kind: structs.NotifyServers, Event: "notify.what.certificate", Params: params, Lingers: one.Away,
				})
			}
			continue
		}
		for i, before := range caWarnings {
			if left < before { // the soonest is told; those before it are over with it
				list = append(list, Condition{
					Key: conditionKey("ca", one.ID, before.String()), Kind: structs.NotifyServers, Event: "notify.what.ca", Params: params,
				})
				for _, longer := range caWarnings[i+1:] {
					list = append(list, Condition{Key: conditionKey("ca", one.ID, longer.String()), Lingers: true})
				}
				break
			}
		}
	}
	return list
}

// conditionKey names a condition in the log, whatever names and models are in it: what
// agents say of themselves is among it.
func conditionKey(sort string, parts ...string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", parts))
	return sort + "/" + hex.EncodeToString(sum[:16])
}

// Hold makes the messages of conditions that hold now and were not told, and notes those
// that are over. A step that changes nothing needs no log. Nothing is noted of a condition
// that nobody is told of: whoever asks for it while it holds is told then. While
// NotifyHoldsMax of them hold, others wait for room. Pure.
func Hold(view View, mark structs.NotifyMark, holding []Condition, now structs.UnixNano) structs.NotifyStep {
	d := newDecision(view, now)
	step := structs.NotifyStep{Before: mark.Step, Index: max(mark.Index, 1), Place: mark.Place, Time: mark.Time}
	room := min(structs.NotifyRaisedMax, max(0, structs.NotifyHoldsMax-len(mark.Holds)))
	stands := make(map[string]bool, len(holding))
	for _, c := range holding {
		stands[c.Key] = true
		if _, told := mark.Holds[c.Key]; told || c.Lingers || len(step.Raised) == room {
			continue
		}
		all := d.holds(c, mark)
		if len(all) == 0 || len(d.made)+len(all) > structs.NotifyMadeMax && len(d.made) > 0 {
			continue
		}
		step.Raised = append(step.Raised, c.Key)
		for _, h := range all[:min(len(all), structs.NotifyMadeMax)] {
			d.tell(h)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(mark.Holds)) {
		if !stands[key] && len(step.Cleared) < structs.NotifyRaisedMax {
			step.Cleared = append(step.Cleared, key)
		}
	}
	step.Made = d.messages()
	return step
}

// holds lists whom a condition is told to.
func (d *decision) holds(c Condition, mark structs.NotifyMark) (all []happening) {
	people := d.view.Operators()
	if c.Project != "" {
		people = d.view.Belong(c.Project)
	}
	for to := range people {
		rule := to.Rule(c.Kind)
		if rule == nil || len(rule.Channels) == 0 {
			continue
		}
		all = append(all, happening{to, rule.Channels, structs.Notification{
			ID: idOf(to.User, c.Key, mark.Step, 0, d.now), User: to.User, Kind: c.Kind, Time: d.now,
			Project: c.Project, Event: c.Event, Params: c.Params,
		}})
	}
	slices.SortFunc(all, func(a, b happening) int { return cmp.Compare(a.to.User, b.to.User) })
	return all
}

package agent

import (
	"cmp"
	"context"
	"crypto/x509"
	"slices"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/notify"
	"nomadlike/nomadlike/structs"
)

// Times of what holds for a while.
const (
	holdingEvery = time.Second
	marginShort  = 10 * time.Second // without a margin before it is told: a server may just start anew
	marginBack   = time.Minute      // with one before that is over
)

// margin is how the quorum stands, over time.
type margin struct {
	short bool
	since time.Time // that it stands so
}

// condition follows the servers, and is what is to be told of them; nil for nothing.
func (m *margin) condition(voters, living int, now time.Time) *notify.Condition {
	c := notify.QuorumCondition(voters, living)
	if short := c != nil; m.since.IsZero() || short != m.short {
		m.short, m.since = short, now
	}
	stands := now.Sub(m.since)
	switch {
	case c != nil:
		c.Lingers = stands < marginShort
		return c
	case stands < marginBack:
		return &notify.Condition{Key: notify.QuorumKey, Lingers: true}
	}
	return nil
}

// decideHolding puts into the log what is to be told of quotas, the quorum and
// certificates, and what of that is over.
func (n *notifier) decideHolding(ctx context.Context) error {
	now := n.now()
	if now.Sub(n.heldLooked) < holdingEvery {
		return nil
	}
	n.heldLooked = now
	snapshot := n.store.Snapshot()
	voters, living, certificates := n.holding()
	list := notify.CertificateConditions(certificates, structs.At(now))
	if c := n.margin.condition(voters, living, now); c != nil {
		list = append(list, *c)
	}
	for project := range snapshot.Projects() {
		list = append(list, notify.QuotaConditions(project, snapshot.ProjectUsage(project.Name))...)
	}
	step := notify.Hold(notifyView{Snapshot: snapshot}, snapshot.NotifyMark(), list, structs.At(now))
	if len(step.Raised)+len(step.Cleared) == 0 {
		return nil
	}
	_, _, err := n.proposer.Load().Submit(ctx, structs.CommandNotifyStep, "", &step)
	if structs.CodeOf(err) == structs.CodeConflict {
		return nil // somebody else decided: the next look sees it
	}
	return err
}

// voting counts the servers that vote, and those of them that live.
func voting(servers []serverView) (voters, living int) {
	for _, s := range servers {
		if s.addr != "" && s.voter {
			voters++
			if s.alive {
				living++
			}
		}
	}
	return voters, living
}

// ending lists the certificates of the cluster with their ends: of agents as they say
// themselves, and of those CAs that it trusts the one that ends last, which is the newest
// while the CA is replaced. Pure.
func ending(members []api.Member, trusted []byte) []notify.Certificate {
	var list []notify.Certificate
	for _, member := range members {
		if end := member.CertificateEndsAt; end != 0 {
			list = append(list, notify.Certificate{Name: cmp.Or(member.Name, member.ID), ID: member.ID, Ends: end, Away: !living(member)})
		}
	}
	cas, err := auth.ParseCertificates(trusted)
	if err != nil || len(cas) == 0 {
		return list // nothing would work without: who looks at certificates here knows
	}
	last := slices.MaxFunc(cas, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
	return append(list, notify.Certificate{ID: auth.Fingerprint(last), Ends: structs.At(last.NotAfter)})
}

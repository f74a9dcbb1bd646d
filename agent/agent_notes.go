package agent

import (
	"cmp"
	"math"
	"slices"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/gossip"
	"nomadlike/nomadlike/structs"
)

// What an operator should know of the agents together, worked out of what each says of
// itself in gossip.

// endingSoon lists the living agents whose certificates end soon, the first to end
// first. Who does not tell an end is left out. Pure.
func endingSoon(members []api.Member, now structs.UnixNano) []api.CertificateEnd {
	var soon []api.CertificateEnd
	for _, member := range members {
		if end := member.CertificateEndsAt; living(member) && end != 0 && end.Sub(now) < api.CertificateSoon {
			soon = append(soon, api.CertificateEnd{ID: member.ID, Name: member.Name, Role: member.Role, EndsAt: end})
		}
	}
	slices.SortFunc(soon, func(a, b api.CertificateEnd) int {
		return cmp.Or(cmp.Compare(a.EndsAt, b.EndsAt), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return soon[:min(len(soon), api.AgentsNamedMax)]
}

// versionsOf lists the versions that living agents run, the one of most agents first,
// with those who run it, servers first. Pure.
func versionsOf(members []api.Member) []api.AgentVersion {
	members = slices.Clone(members)
	slices.SortFunc(members, func(a, b api.Member) int {
		server := func(m api.Member) int {
			if m.Role == string(auth.RoleServer) {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(server(a), server(b)), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	versions := []api.AgentVersion{}
	for _, member := range members {
		if !living(member) || member.Version == "" {
			continue
		}
		at := slices.IndexFunc(versions, func(v api.AgentVersion) bool { return v.Version == member.Version })
		if at < 0 {
			at = len(versions)
			versions = append(versions, api.AgentVersion{Version: member.Version, Names: []string{}})
		}
		one := &versions[at]
		if one.Agents++; len(one.Names) < api.AgentsNamedMax {
			one.Names = append(one.Names, cmp.Or(member.Name, member.ID))
		}
	}
	slices.SortStableFunc(versions, func(a, b api.AgentVersion) int {
		return cmp.Or(cmp.Compare(b.Agents, a.Agents), cmp.Compare(a.Version, b.Version))
	})
	return versions
}

func living(member api.Member) bool {
	return member.Status == string(gossip.StateAlive) || member.Status == string(gossip.StateSuspect)
}

// unixSeconds is a time that was told in seconds; 0 for what is none.
func unixSeconds(at int64) structs.UnixNano {
	if at <= 0 || at > math.MaxInt64/int64(time.Second) {
		return 0
	}
	return structs.At(time.Unix(at, 0))
}

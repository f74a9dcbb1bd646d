package command

import (
	"slices"
	"strconv"
	"strings"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/outlook"
)

// tryQuota reads PROJECT=KIND[/MODEL]:MAXIMUM, where the kind is cpu or vendor/type.
func tryQuota(value string) (project string, quota structs.Quota, err error) {
	project, rest, found := strings.Cut(value, "=")
	colon := strings.LastIndexByte(rest, ':')
	if !found || project == "" || colon <= 0 {
		return "", quota, usagef("cli.try.quota", "value", safe(value))
	}
	most, err := strconv.Atoi(rest[colon+1:])
	if err != nil || most < 0 {
		return "", quota, usagef("cli.try.quota", "value", safe(value))
	}
	quota.Kind, quota.Maximum = rest[:colon], &most
	if parts := strings.SplitN(quota.Kind, "/", 3); len(parts) == 3 {
		quota.Kind, quota.Model = parts[0]+"/"+parts[1], parts[2]
	}
	return project, quota, nil
}

// completeQuotas adds the other quotas that a project has to those that are tried: a
// change of quotas replaces them all.
func (env *Env) completeQuotas(client *api.Client, changes []outlook.Change) error {
	known := make(map[string][]structs.Quota) // as the changes before leave them
	for i := range changes {
		change := &changes[i]
		if change.Kind != outlook.ChangeQuota {
			continue
		}
		quotas, asked := known[change.Project]
		if !asked {
			found, _, err := client.Project(env.Context, change.Project, nil)
			if err != nil && structs.CodeOf(err) != structs.CodeNotFound {
				return err
			}
			if found != nil {
				quotas = found.Project.Quotas
			}
		}
		quotas = slices.Clone(quotas)
		tried := change.Quotas[0]
		at := slices.IndexFunc(quotas, func(q structs.Quota) bool { return q.Kind == tried.Kind && q.Model == tried.Model })
		if at < 0 {
			quotas = append(quotas, tried)
		} else {
			tried.Guaranteed = min(quotas[at].Guaranteed, *tried.Maximum)
			quotas[at] = tried
		}
		change.Quotas, known[change.Project] = quotas, quotas
	}
	return nil
}

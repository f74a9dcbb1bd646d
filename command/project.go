package command

import (
	"flag"
	"fmt"
	"sort"
	"strconv"
	"strings"

	"nomadlike/jobspec"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

func projectVerbs() []verb {
	return []verb{
		{path: "project list", setup: projectList},
		{path: "project status", args: "PROJECT", setup: projectStatus},
		{path: "project apply", args: "FILE", setup: projectApply},
		{path: "project usage", args: "PROJECT", setup: projectUsage},
		{path: "project archive", args: "PROJECT", setup: projectArchive},
		{path: "project unarchive", args: "PROJECT", setup: projectUnarchive},
		{path: "project delete", args: "PROJECT", setup: projectDelete},
	}
}

// projectArchive closes a project for new jobs.
func projectArchive(set *flag.FlagSet) func(*Env, []string) error {
	stop := set.Bool("stop-jobs", false, "cli.flag.stop_jobs")
	return deleting("PROJECT", "cli.project.archived", func(env *Env, client *api.Client, name string) error {
		_, err := client.ArchiveProject(env.Context, name, api.ArchiveRequest{Archived: true, StopJobs: *stop})
		return err
	})(set)
}

// projectUnarchive opens a project again.
func projectUnarchive(set *flag.FlagSet) func(*Env, []string) error {
	return deleting("PROJECT", "cli.project.unarchived", func(env *Env, client *api.Client, name string) error {
		_, err := client.ArchiveProject(env.Context, name, api.ArchiveRequest{})
		return err
	})(set)
}

func projectApply(set *flag.FlagSet) func(*Env, []string) error {
	return applying("cli.project.applied", jobspec.ParseProject, func(env *Env, client *api.Client, project *structs.Project) (string, error) {
		_, err := client.PutProject(env.Context, project)
		return project.Name, err
	})(set)
}

func projectDelete(set *flag.FlagSet) func(*Env, []string) error {
	return deleting("PROJECT", "cli.project.deleted", func(env *Env, client *api.Client, name string) error {
		_, err := client.DeleteProject(env.Context, name)
		return err
	})(set)
}

func projectList(set *flag.FlagSet) func(*Env, []string) error {
	archived := set.Bool("archived", false, "cli.flag.archived")
	return reading("", func(env *Env, client *api.Client, _ string) ([]api.ProjectDetail, error) {
		if *archived {
			list, err := client.ArchivedProjects(env.Context)
			if err != nil {
				return nil, err
			}
			return all(list.Projects), nil
		}
		list, _, err := client.Projects(env.Context, nil)
		if err != nil {
			return nil, err
		}
		return all(list.Projects), nil
	}, (*Env).printProjects)(set)
}

func (env *Env) printProjects(projects []api.ProjectDetail) {
	if len(projects) == 0 {
		fmt.Fprintln(env.Stdout, env.text("cli.project.list_empty"))
		return
	}
	table := newTable(env.Stdout, env.text("cli.col.name"), env.text("cli.col.quota"), env.text("cli.col.urgent"), env.text("cli.col.running"), env.text("cli.col.queued_jobs"), env.text("cli.col.used_hours"))
	for i := range projects {
		p := &projects[i]
		var quotas []string
		for _, q := range p.Quotas {
			quotas = append(quotas, env.quotaText(q))
		}
		table.row(safe(p.Project.Name), strings.Join(quotas, "; "), env.urgentText(p), strconv.Itoa(p.Running), strconv.Itoa(p.Queued), hoursText(p.Shares))
	}
	table.print()
}

// quotaText is a quota in one word: held/maximum kind.
func (env *Env) quotaText(q api.QuotaUse) string {
	most := "∞"
	if q.Maximum != nil {
		most = strconv.Itoa(*q.Maximum)
	}
	return strings.TrimSpace(fmt.Sprintf("%s/%s %s %s", cores(q.Held), most, q.Kind, safe(q.Model)))
}

func (env *Env) urgentText(p *api.ProjectDetail) string {
	if p.Project.UrgentLimit == nil {
		return strconv.Itoa(p.Urgent)
	}
	return fmt.Sprintf("%d/%d", p.Urgent, *p.Project.UrgentLimit)
}

func hoursText(shares []api.PoolShare) string {
	devices := 0.0
	for _, share := range shares {
		devices += share.DeviceHours
	}
	return strconv.FormatFloat(devices, 'f', 1, 64)
}

func projectStatus(set *flag.FlagSet) func(*Env, []string) error {
	return reading("PROJECT", func(env *Env, client *api.Client, name string) (*api.ProjectDetail, error) {
		project, _, err := client.Project(env.Context, name, nil)
		return project, err
	}, (*Env).printProject)(set)
}

func (env *Env) printProject(p *api.ProjectDetail) {
	fields := newTable(env.Stdout, "", "")
	fields.row(env.text("cli.col.name"), safe(p.Project.Name))
	if p.Project.Description != "" {
		fields.row(env.text("cli.col.description"), safe(p.Project.Description))
	}
	for _, list := range []struct {
		id    string
		names []string
	}{{"cli.col.admins", p.Project.Admins}, {"cli.col.members", p.Project.Members}, {"cli.col.viewers", p.Project.Viewers}} {
		if len(list.names) > 0 {
			fields.row(env.text(list.id), safe(strings.Join(list.names, " ")))
		}
	}
	for i, one := range p.Project.Granted {
		title := ""
		if i == 0 {
			title = env.text("cli.col.granted")
		}
		fields.row(title, env.text("cli.project.granted", "user", safe(one.User), "role", env.roleText(one.Role), "provider", safe(one.Provider)))
	}
	row := func(id, value string) {
		if value != "" {
			fields.row(env.text(id), value)
		}
	}
	if p.Project.Archived {
		row("cli.col.archived", env.text("cli.project.archived_by", "by", p.Project.ArchivedBy, "at", when(p.Project.ArchivedAt)))
	}
	if p.Project.Weight > 0 {
		fields.row(env.text("cli.col.weight"), cores(p.Project.Weight))
	}
	fields.row(env.text("cli.col.running"), strconv.Itoa(p.Running))
	fields.row(env.text("cli.col.queued_jobs"), strconv.Itoa(p.Queued))
	fields.row(env.text("cli.col.urgent"), env.urgentText(p))
	defaults := &p.Project.JobDefaults
	row("cli.col.pool_default", safe(defaults.Pool))
	row("cli.col.priority", string(defaults.Priority))
	row("cli.col.time_limit", spanText(defaults.TimeLimit))
	row("cli.col.image_default", safe(defaults.Image))
	row("cli.col.output_storage_default", safe(defaults.OutputStorage))
	env.taskDefaultsRows(row, &p.Project.Defaults)
	env.ceilingsRows(row, &p.Project.Ceilings)
	if p.Project.BoundsBy != "" {
		row("cli.col.bounds_set", fmt.Sprintf("%s, %s", when(p.Project.BoundsAt), safe(p.Project.BoundsBy)))
	}
	row("cli.col.code_most", size(p.Project.CodeMost()))
	if p.Project.NoSharing {
		row("cli.col.sharing", env.text("cli.sharing.off", "by", safe(p.Project.BoundsBy), "at", when(p.Project.BoundsAt)))
	}
	fields.print()
	env.printCeilings("cli.ceilings.effective", p.Effective)
	env.printQuotas(p.Quotas)
	if len(p.Shares) > 0 {
		fmt.Fprintln(env.Stdout)
		shares := append([]api.PoolShare(nil), p.Shares...)
		sort.Slice(shares, func(a, b int) bool { return shares[a].Pool < shares[b].Pool })
		table := newTable(env.Stdout, env.text("cli.col.pool"), env.text("cli.col.device_hours"), env.text("cli.col.cpu_hours"))
		for _, share := range shares {
			table.row(safe(share.Pool), strconv.FormatFloat(share.DeviceHours, 'f', 1, 64), strconv.FormatFloat(share.CPUHours, 'f', 1, 64))
		}
		table.print()
	}
}

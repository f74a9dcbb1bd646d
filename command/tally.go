package command

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"

	"nomadlike/nomadlike/api"
)

// useQuery declares of which days use is asked for; days begin where the reader is.
func useQuery(set *flag.FlagSet) func() api.UseQuery {
	days := set.Int("days", api.UseDaysDefault, "cli.flag.use_days")
	return func() api.UseQuery {
		_, offset := time.Now().Zone()
		return api.UseQuery{Days: *days, Zone: offset / 60}
	}
}

// projectUsage shows what the jobs of a project used.
func projectUsage(set *flag.FlagSet) func(*Env, []string) error {
	query := useQuery(set)
	return reading("PROJECT", func(env *Env, client *api.Client, name string) (*api.ProjectUse, error) {
		return client.ProjectUse(env.Context, name, query())
	}, (*Env).printProjectUse)(set)
}

func (env *Env) printProjectUse(use *api.ProjectUse) {
	env.printDays(&use.Use)
	if len(use.Users) == 0 {
		return
	}
	fmt.Fprintln(env.Stdout)
	table := newTable(env.Stdout, env.text("cli.col.user"), env.text("cli.col.device_hours"), env.text("cli.col.cpu_hours"))
	for _, user := range use.Users {
		table.row(safe(user.User), useHours(user.DeviceHours), useHours(user.CPUHours))
	}
	table.print()
}

// selfUsage shows what the caller's own jobs have and used.
func selfUsage(set *flag.FlagSet) func(*Env, []string) error {
	query := useQuery(set)
	return reading("", func(env *Env, client *api.Client, _ string) (*api.SelfUse, error) {
		return client.SelfUse(env.Context, query())
	}, (*Env).printSelfUse)(set)
}

func (env *Env) printSelfUse(use *api.SelfUse) {
	fields := newTable(env.Stdout, "", "")
	fields.row(env.text("cli.col.user"), safe(use.User))
	fields.row(env.text("cli.col.project"), safe(use.Project))
	fields.row(env.text("cli.col.running"), strconv.Itoa(use.Running))
	fields.row(env.text("cli.col.queued_jobs"), strconv.Itoa(use.Queued))
	fields.print()
	env.printQuotas(use.Quotas)
	env.printCeilings("cli.usage.ceilings", use.Effective, "pool", safe(use.Pool))
	if len(use.Idle) > 0 {
		fmt.Fprintln(env.Stdout)
		table := newTable(env.Stdout, env.text("cli.col.idle_devices"), env.text("cli.col.rank"), env.text("cli.col.node"), env.text("cli.col.idle_since"))
		for _, idle := range use.Idle {
			table.row(strconv.Itoa(idle.Devices), safe(idle.Rank), safe(idle.Node), when(idle.Since))
		}
		table.print()
	}
	fmt.Fprintln(env.Stdout)
	env.printDays(&use.Use)
	if len(use.Jobs) == 0 {
		return
	}
	fmt.Fprintln(env.Stdout)
	table := newTable(env.Stdout, env.text("cli.col.job"), env.text("cli.col.project"), env.text("cli.col.device_hours"), env.text("cli.col.cpu_hours"))
	for _, job := range use.Jobs {
		table.row(safe(job.Name), safe(job.Project), useHours(job.DeviceHours), useHours(job.CPUHours))
	}
	table.print()
	if use.More > 0 {
		fmt.Fprintln(env.Stdout, env.text("cli.usage.more", "count", use.More))
	}
}

// printDays shows what was used on each day.
func (env *Env) printDays(use *api.UseOverTime) {
	table := newTable(env.Stdout, env.text("cli.col.day"), env.text("cli.col.device_hours"), env.text("cli.col.cpu_hours"), env.text("cli.col.kinds"))
	for _, day := range use.Days {
		var kinds []string
		for _, kind := range day.Kinds {
			name := env.text("cli.usage.unknown_kind")
			if kind.Kind != "" {
				name = strings.TrimSpace(kind.Kind + " " + kind.Model)
			}
			kinds = append(kinds, safe(name)+" "+useHours(kind.DeviceHours))
		}
		table.row(day.Start.Time().Local().Format(time.DateOnly), useHours(day.DeviceHours), useHours(day.CPUHours), strings.Join(kinds, ", "))
	}
	table.row(env.text("cli.usage.all"), useHours(use.DeviceHours), useHours(use.CPUHours), "")
	table.print()
	if use.KnownSince != 0 {
		fmt.Fprintln(env.Stdout, env.text("cli.usage.known_since", "at", when(use.KnownSince)))
	}
}

func useHours(of float64) string { return strconv.FormatFloat(of, 'f', 1, 64) }

// printQuotas shows what is held of quotas.
func (env *Env) printQuotas(quotas []api.QuotaUse) {
	if len(quotas) == 0 {
		return
	}
	fmt.Fprintln(env.Stdout)
	table := newTable(env.Stdout, env.text("cli.col.kind"), env.text("cli.col.model"), env.text("cli.col.held"),
		env.text("cli.col.guaranteed"), env.text("cli.col.maximum"))
	for _, q := range quotas {
		most := "∞"
		if q.Maximum != nil {
			most = strconv.Itoa(*q.Maximum)
		}
		table.row(q.Kind, safe(q.Model), cores(q.Held), strconv.Itoa(q.Guaranteed), most)
	}
	table.print()
}

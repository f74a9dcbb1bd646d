package command

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"nomadlike/jobspec"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

func poolVerbs() []verb {
	return []verb{
		{path: "pool list", setup: poolList},
		{path: "pool status", args: "POOL", setup: poolStatus},
		{path: "pool apply", args: "FILE", setup: poolApply},
		{path: "pool delete", args: "POOL", setup: poolDelete},
	}
}

// reading is a verb that asks the cluster for one value and shows it.
func reading[T any](wanted string, read func(*Env, *api.Client, string) (T, error), plain func(*Env, T)) func(*flag.FlagSet) func(*Env, []string) error {
	return func(set *flag.FlagSet) func(*Env, []string) error {
		connection, output := declareConnection(set), declareOutput(set)
		return func(env *Env, args []string) error {
			name := ""
			if err := none(args); wanted == "" && err != nil {
				return err
			}
			if wanted != "" {
				var err error
				if name, err = one(args, wanted); err != nil {
					return err
				}
			}
			client, err := env.connect(connection)
			if err != nil {
				return err
			}
			defer client.Close()
			value, err := read(env, client, name)
			if err != nil {
				return err
			}
			return env.show(output, value, func() { plain(env, value) })
		}
	}
}

// deleting is a verb that removes what it names and says so.
func deleting(wanted, done string, remove func(*Env, *api.Client, string) error) func(*flag.FlagSet) func(*Env, []string) error {
	return func(set *flag.FlagSet) func(*Env, []string) error {
		connection := declareConnection(set)
		return func(env *Env, args []string) error {
			name, err := one(args, wanted)
			if err != nil {
				return err
			}
			client, err := env.connect(connection)
			if err != nil {
				return err
			}
			defer client.Close()
			if err := remove(env, client, name); err != nil {
				return err
			}
			fmt.Fprintln(env.Stdout, env.text(done, "name", safe(name)))
			return nil
		}
	}
}

func poolList(set *flag.FlagSet) func(*Env, []string) error {
	return reading("", func(env *Env, client *api.Client, _ string) ([]api.PoolDetail, error) {
		list, _, err := client.Pools(env.Context, nil)
		if err != nil {
			return nil, err
		}
		return all(list.Pools), nil
	}, (*Env).printPools)(set)
}

func (env *Env) printPools(pools []api.PoolDetail) {
	if len(pools) == 0 {
		fmt.Fprintln(env.Stdout, env.text("cli.pool.list_empty"))
		return
	}
	table := newTable(env.Stdout, env.text("cli.col.name"), env.text("cli.col.nodes"), env.text("cli.col.ready"), "CPU",
		env.text("cli.col.devices"), env.text("cli.col.queued_jobs"), env.text("cli.col.order"), "RDMA", env.text("cli.col.dedicated"))
	for _, p := range pools {
		table.row(safe(p.Pool.Name), strconv.Itoa(p.Nodes), strconv.Itoa(p.Ready), fmt.Sprintf("%s/%s", cores(p.CPUUsed), cores(p.CPU)),
			fmt.Sprintf("%d/%d", p.DevicesUsed, p.Devices), strconv.Itoa(p.Queued), env.orderText(p.Pool.Order),
			env.onlyYes(p.Pool.RDMA), env.onlyYes(p.Pool.Dedicated))
	}
	table.print()
}

func (env *Env) orderText(order structs.QueueOrder) string {
	if order == structs.OrderFair {
		return env.text("cli.order.fair")
	}
	return env.text("cli.order.submission")
}

// onlyYes says yes, and nothing for no.
func (env *Env) onlyYes(yes bool) string {
	if yes {
		return env.yesNo(true)
	}
	return ""
}

func poolStatus(set *flag.FlagSet) func(*Env, []string) error {
	return reading("POOL", func(env *Env, client *api.Client, name string) (*api.PoolDetail, error) {
		pool, _, err := client.Pool(env.Context, name, nil)
		return pool, err
	}, (*Env).printPool)(set)
}

func (env *Env) printPool(p *api.PoolDetail) {
	fields := newTable(env.Stdout, "", "")
	row := func(id, value string) {
		if value != "" {
			fields.row(env.text(id), value)
		}
	}
	pool := p.Pool
	row("cli.col.name", safe(pool.Name))
	row("cli.col.description", safe(pool.Description))
	row("cli.col.nodes", fmt.Sprintf("%d (%s)", p.Nodes, safe(strings.Join(p.Members, " "))))
	row("cli.col.ready", strconv.Itoa(p.Ready))
	fields.row("CPU", fmt.Sprintf("%s/%s", cores(p.CPUUsed), cores(p.CPU)))
	row("cli.col.devices", fmt.Sprintf("%d/%d", p.DevicesUsed, p.Devices))
	row("cli.col.queued_jobs", strconv.Itoa(p.Queued))
	row("cli.col.order", env.orderText(pool.Order))
	row("cli.col.dedicated", env.onlyYes(pool.Dedicated))
	if pool.RDMA || pool.NoRDMA {
		fields.row("RDMA", env.yesNo(pool.RDMA))
	}
	if pool.Raw {
		row("cli.col.raw", env.onlyYes(true))
	}
	if pool.LetsRoot() {
		row("cli.col.root", env.Stdout.paint(colourYellow, env.yesNo(true)))
	}
	if pool.Exec != nil && pool.Exec.Any() {
		row("cli.col.accounts", safe(accountsText(&pool.Exec.Accounts)))
	}
	if pool.SKU != nil {
		row("cli.col.sku", skuText(pool.SKU))
	}
	row("cli.col.time_limit", spanText(pool.Defaults.TimeLimit))
	row("cli.col.priority", string(pool.Defaults.Priority))
	row("cli.col.hold", spanText(pool.Defaults.Hold))
	env.ceilingsRows(row, &pool.Ceilings)
	if pool.CeilingsBy != "" {
		row("cli.col.bounds_set", fmt.Sprintf("%s, %s", when(pool.CeilingsAt), safe(pool.CeilingsBy)))
	}
	row("cli.col.sku_least", countText(pool.Floors.SKU))
	if pool.Floors.CPU > 0 {
		row("cli.col.cpu_least", structs.FormatMilliCPU(structs.MilliCPU(pool.Floors.CPU)))
	}
	if pool.Floors.Memory > 0 {
		row("cli.col.memory_least", structs.FormatSize(pool.Floors.Memory))
	}
	row("cli.col.devices_least", countText(pool.Floors.Devices))
	env.taskDefaultsRows(row, &pool.Defaults.Task)
	fields.print()
	env.printCeilings("cli.ceilings.effective", p.Effective)
}

// ceilingsRows shows the most that a record lets jobs ask for.
func (env *Env) ceilingsRows(row func(id, value string), c *structs.PoolCeilings) {
	row("cli.col.time_limit_most", spanText(c.TimeLimit))
	row("cli.col.nodes_most", countText(c.Nodes))
	row("cli.col.devices_most", countText(c.Devices))
	row("cli.col.resumes_most", countText(c.MaxResumes))
	row("cli.col.grace_most", spanText(c.Grace))
	row("cli.col.hold_most", spanText(c.Hold))
	row("cli.col.no_checkpoint", env.onlyYes(c.NoCheckpoint))
}

// taskDefaultsRows shows what a record sets for tasks.
func (env *Env) taskDefaultsRows(row func(id, value string), t *structs.TaskDefaults) {
	for _, name := range slices.Sorted(maps.Keys(t.Env)) {
		row("cli.col.env_default", safe(name+"="+t.Env[name]))
	}
	row("cli.col.arguments_default", safe(t.Arguments))
}

// accountsText lists who is bound to which account.
func accountsText(a *structs.Accounts) string {
	var parts []string
	for _, user := range slices.Sorted(maps.Keys(a.Users)) {
		parts = append(parts, user+"="+a.Users[user])
	}
	for _, project := range slices.Sorted(maps.Keys(a.Projects)) {
		parts = append(parts, project+"/*="+a.Projects[project])
	}
	return strings.Join(parts, " ")
}

func skuText(sku *structs.SKU) string {
	parts := []string{cores(sku.CPU) + " CPU", size(sku.Memory)}
	for _, d := range sku.Devices {
		parts = append(parts, strings.TrimSpace(fmt.Sprintf("%d× %s %s", d.Count, d.Kind, safe(d.Model))))
	}
	return strings.Join(parts, ", ")
}

func spanText(span structs.Duration) string {
	if span == 0 {
		return ""
	}
	return structs.FormatDuration(span)
}

func countText(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func poolApply(set *flag.FlagSet) func(*Env, []string) error {
	return applying("cli.pool.applied", jobspec.ParsePool, func(env *Env, client *api.Client, pool *structs.Pool) (string, error) {
		_, err := client.PutPool(env.Context, pool)
		return pool.Name, err
	})(set)
}

// applying is a verb that reads a file and puts what it holds into the cluster.
func applying[T any](done string, parse func(string, []byte, jobspec.Options) (*T, *jobspec.SourceMap, jobspec.Diagnostics),
	put func(*Env, *api.Client, *T) (string, error),
) func(*flag.FlagSet) func(*Env, []string) error {
	return func(set *flag.FlagSet) func(*Env, []string) error {
		connection, source := declareConnection(set), declareSource(set)
		return func(env *Env, args []string) error {
			path, err := one(args, "FILE")
			if err != nil {
				return err
			}
			text, options, err := env.readWith(path, source)
			if err != nil {
				return err
			}
			value, places, diagnostics := parse(path, text, options)
			if err := diagnostics.Render(env.Stderr, env.style()); err != nil {
				return err
			}
			if diagnostics.HasErrors() {
				return &exitError{code: ExitError}
			}
			client, err := env.connect(connection)
			if err != nil {
				return err
			}
			defer client.Close()
			name, err := put(env, client, value)
			if err != nil {
				return env.explain(err, places)
			}
			fmt.Fprintln(env.Stdout, env.text(done, "name", safe(name)))
			return nil
		}
	}
}

func poolDelete(set *flag.FlagSet) func(*Env, []string) error {
	return deleting("POOL", "cli.pool.deleted", func(env *Env, client *api.Client, name string) error {
		_, err := client.DeletePool(env.Context, name)
		return err
	})(set)
}

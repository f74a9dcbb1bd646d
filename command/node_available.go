package command

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"nomadlike/jobspec"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

func availableVerbs() []verb {
	return []verb{
		{path: "node available", args: "[FILE]", setup: nodeAvailable},
		{path: "node machines", setup: nodeMachines},
	}
}

func nodeAvailable(set *flag.FlagSet) func(*Env, []string) error {
	source, connection, output := declareSource(set), declareConnection(set), declareOutput(set)
	pool := set.String("pool", "", "cli.flag.pool_only")
	model := set.String("model", "", "cli.flag.model_only")
	return func(env *Env, args []string) error {
		path, err := atMostOne(args)
		if err != nil {
			return err
		}
		job, places := anything(), (*jobspec.SourceMap)(nil)
		if path != "" {
			if job, places, err = env.readJob(path, source); err != nil {
				return err
			}
		}
		if *pool != "" {
			job.Placement.Pool = *pool
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		found, err := client.Available(env.Context, api.JobRequest{Job: job})
		if err != nil && places != nil {
			return env.explain(err, places)
		}
		if err != nil {
			return err
		}
		if *model != "" {
			ofModel(found, *model)
		}
		return env.show(output, found, func() { env.printAvailable(found, path != "") })
	}
}

// ofModel leaves the nodes with cards of a model, that model, and the specs that
// could stand there.
func ofModel(found *api.Available, model string) {
	is := func(name string) bool { return strings.EqualFold(name, model) }
	found.Nodes = slices.DeleteFunc(found.Nodes, func(node api.AvailableNode) bool {
		return !slices.ContainsFunc(node.Devices, func(share api.DeviceShare) bool { return is(share.Model) })
	})
	found.Models = slices.DeleteFunc(found.Models, func(demand api.DeviceDemand) bool { return !is(demand.Model) })
	for i := range found.Specs {
		spec := &found.Specs[i]
		spec.Nodes, spec.Idle = 0, 0
		for n := range found.Nodes {
			if slices.Contains(found.Nodes[n].Specs, spec.Spec) {
				spec.Nodes++
			}
			if slices.Contains(found.Nodes[n].Now, spec.Spec) {
				spec.Idle++
			}
		}
	}
	found.Specs = slices.DeleteFunc(found.Specs, func(spec api.AvailableSpec) bool { return spec.Nodes == 0 })
}

// anything is a job that could stand on every node.
func anything() *structs.Job {
	return &structs.Job{Name: "any", Nodes: 1, Resources: []structs.Resources{{}}}
}

func (env *Env) printAvailable(found *api.Available, asked bool) {
	if asked {
		for _, spec := range found.Specs {
			label := spec.Label
			if label == "" {
				label = strconv.Itoa(spec.Spec + 1)
			}
			fmt.Fprintln(env.Stdout, env.text("cli.available.spec", "spec", safe(label), "idle", spec.Idle, "nodes", spec.Nodes, "need", spec.Need))
		}
		fmt.Fprintln(env.Stdout)
	}
	if len(found.Nodes) == 0 {
		fmt.Fprintln(env.Stdout, env.text("cli.available.none"))
	} else {
		env.printAvailableNodes(found, asked)
	}
	if len(found.Models) == 0 {
		return
	}
	fmt.Fprintln(env.Stdout)
	table := newTable(env.Stdout, env.text("cli.col.kind"), env.text("cli.col.model"), env.text("cli.col.used"), env.text("cli.col.wanted"),
		env.text("cli.col.queued_jobs"))
	for _, model := range found.Models {
		table.row(safe(model.Kind), safe(model.Model), fmt.Sprintf("%d/%d", model.Used, model.Total), strconv.Itoa(model.Wanted), strconv.Itoa(model.Jobs))
	}
	table.print()
}

func (env *Env) printAvailableNodes(found *api.Available, asked bool) {
	heads := []string{
		env.text("cli.col.node"), env.text("cli.col.pool"), env.text("cli.col.state"), env.text("cli.col.system"),
		env.text("cli.col.driver_version"), "CPU", env.text("cli.col.memory"), env.text("cli.col.devices"),
	}
	if asked {
		heads = append(heads, env.text("cli.col.specs"))
	}
	table := newTable(env.Stdout, append(heads, env.text("cli.col.use"))...)
	for i := range found.Nodes {
		node := &found.Nodes[i]
		row := []string{
			safe(node.Name), safe(node.Pool), env.availableText(node.State), safe(strings.TrimSpace(node.OS + " " + node.Kernel)),
			safe(strings.Join(node.Drivers, " ")), fmt.Sprintf("%s/%s", cores(node.CPUUsed), cores(node.CPU)),
			fmt.Sprintf("%s/%s", size(node.MemoryUsed), size(node.Memory)), devicesText(node.Devices),
		}
		if asked {
			row = append(row, specsText(found.Specs, node.Specs))
		}
		table.row(append(row, env.cardsText(node.Cards))...)
	}
	table.print()
}

// availableText is the state of a node of the table, 空闲 or 紧张 in Chinese.
func (env *Env) availableText(state string) string {
	text := env.text("cli.available." + state)
	if state == api.NodeIdle {
		return env.Stdout.paint(colourGreen, text)
	}
	return env.Stdout.paint(colourYellow, text)
}

// specsText names the specs that could stand on a node.
func specsText(specs []api.AvailableSpec, here []int) string {
	names := make([]string, 0, len(here))
	for _, i := range here {
		if at := slices.IndexFunc(specs, func(spec api.AvailableSpec) bool { return spec.Spec == i }); at >= 0 && specs[at].Label != "" {
			names = append(names, safe(specs[at].Label))
		} else {
			names = append(names, strconv.Itoa(i+1))
		}
	}
	return strings.Join(names, " ")
}

// devicesText counts devices as used/total of each model.
func devicesText(shares []api.DeviceShare) string {
	texts := make([]string, 0, len(shares))
	for _, share := range shares {
		name := share.Model
		if name == "" {
			name = share.Kind
		}
		texts = append(texts, fmt.Sprintf("%d/%d %s", share.Used, share.Total, safe(name)))
	}
	return strings.Join(texts, ", ")
}

// cardsText lists the cards in use with their jobs, as in 3:digits. Of a job that
// one may not see it says whose it is not.
func (env *Env) cardsText(cards []api.CardUse) string {
	var texts []string
	for _, card := range cards {
		switch {
		case card.Used && card.Job == "":
			texts = append(texts, strings.TrimSuffix(safe(card.Text), ":")+":"+env.text("cli.available.other_project"))
		case card.Used:
			texts = append(texts, safe(card.Text))
		}
	}
	return strings.Join(texts, " ")
}

func nodeMachines(set *flag.FlagSet) func(*Env, []string) error {
	pool := set.String("pool", "", "cli.flag.pool_only")
	return reading("", func(env *Env, client *api.Client, _ string) (*api.MachineList, error) {
		found, _, err := client.Machines(env.Context, *pool, nil)
		if err != nil {
			return nil, err
		}
		found.Machines = all(found.Machines)
		return found, nil
	}, func(env *Env, found *api.MachineList) { env.printMachines(found.Machines) })(set)
}

func (env *Env) printMachines(machines []api.Machine) {
	if len(machines) == 0 {
		fmt.Fprintln(env.Stdout, env.text("cli.available.none"))
		return
	}
	table := newTable(env.Stdout, env.text("cli.col.node"), "ID", env.text("cli.col.pool"), env.text("cli.col.state"), "CPU",
		env.text("cli.col.memory"), env.text("cli.col.devices"), env.text("cli.col.work"))
	for i := range machines {
		m := &machines[i]
		state := env.Stdout.paint(colourGreen, env.text("cli.machine.free"))
		switch {
		case m.Status != structs.NodeReady:
			state = env.nodeStatusText(m.Status)
		case m.Eligibility != structs.NodeEligible:
			state = env.text("cli.eligibility." + string(m.Eligibility))
		case !m.Free:
			state = env.Stdout.paint(colourYellow, env.text("cli.machine.busy"))
		}
		table.row(safe(m.Name), short(m.ID), safe(m.Pool), state, fmt.Sprintf("%s/%s", cores(m.CPUUsed), cores(m.CPU)),
			fmt.Sprintf("%s/%s", size(m.MemoryUsed), size(m.Memory)), devicesText(m.Devices), env.workText(m))
	}
	table.print()
}

// workText says what runs on a machine: what a VIP job would wait for, or end.
func (env *Env) workText(m *api.Machine) string {
	var texts []string
	if m.NominatedFor != nil {
		texts = append(texts, env.text("cli.machine.claimed", "job", safe(m.NominatedFor.Name)))
	}
	for i := range m.Work {
		work := &m.Work[i]
		name := safe(work.Job.Name)
		if name == "" {
			name = env.text("cli.machine.hidden")
		}
		switch {
		case work.VIP:
			texts = append(texts, env.text("cli.machine.vip", "job", name))
		case work.Ending:
			texts = append(texts, env.text("cli.machine.ending", "job", name))
		default:
			texts = append(texts, env.text("cli.machine.work", "job", name, "nodes", work.Nodes, "since", when(work.Since))+env.costText(work))
		}
	}
	return strings.Join(texts, "; ")
}

// costText says whose work it is, what ending it would lose, and when it ends by
// itself.
func (env *Env) costText(work *api.MachineWork) string {
	text := ""
	if work.Job.User != "" {
		text += ", " + env.text("cli.machine.owner", "user", safe(work.Job.User))
	}
	switch {
	case work.Lost == 0:
	case work.CheckpointAt != 0:
		text += ", " + env.text("cli.machine.saved", "lost", structs.FormatDuration(work.Lost), "cards", work.GangDevices)
	default:
		text += ", " + env.text("cli.machine.unsaved", "lost", structs.FormatDuration(work.Lost), "cards", work.GangDevices)
	}
	if work.P50 != 0 {
		text += ", " + env.text("cli.machine.ends", "time", when(work.P50))
	}
	return text
}

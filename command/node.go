package command

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

func nodeVerbs() []verb {
	return []verb{
		{path: "node status", args: "[NODE]", setup: nodeStatus},
		{path: "node history", args: "NODE", setup: nodeHistory},
		{path: "node figures", args: "NODE", setup: nodeUsage},
		{path: "node drain", args: "NODE", setup: nodeDrain},
		{path: "node remove", args: "NODE", setup: nodeRemove},
		{path: "node cordon", args: "NODE", setup: nodeChange("cli.node.cordoned", (*api.Client).CordonNode)},
		{path: "node uncordon", args: "NODE", setup: nodeChange("cli.node.uncordoned", (*api.Client).UncordonNode)},
	}
}

// nodeHistory prints what happened to a node and its cards.
func nodeHistory(set *flag.FlagSet) func(*Env, []string) error {
	read := func(env *Env, client *api.Client, id string) ([]structs.Event, error) {
		events, err := client.NodeEvents(env.Context, id)
		if err != nil {
			return nil, err
		}
		return all(events.Events), nil
	}
	return reading("NODE", read, func(env *Env, events []structs.Event) {
		for i := range events {
			env.printEvent(&events[i])
		}
	})(set)
}

func nodeStatus(set *flag.FlagSet) func(*Env, []string) error {
	connection, output := declareConnection(set), declareOutput(set)
	stale := set.Bool("stale", false, "cli.flag.stale")
	return func(env *Env, args []string) error {
		id, err := atMostOne(args)
		if err != nil {
			return err
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		if id != "" {
			return env.oneNode(client, id, output, *stale)
		}
		nodes, err := everyPage(&api.Query{Stale: *stale}, func(query *api.Query) ([]api.NodeSummary, string, error) {
			page, _, err := client.Nodes(env.Context, query)
			if err != nil {
				return nil, "", err
			}
			return page.Nodes, page.Next, nil
		})
		if err != nil {
			return err
		}
		return env.show(output, nodes, func() { env.printNodes(nodes) })
	}
}

func (env *Env) printNodes(nodes []api.NodeSummary) {
	if len(nodes) == 0 {
		fmt.Fprintln(env.Stdout, env.text("cli.node.list_empty"))
		return
	}
	table := newTable(env.Stdout, "ID", env.text("cli.col.name"), env.text("cli.col.address"), "CPU", env.text("cli.col.memory"),
		env.text("cli.col.devices"), env.text("cli.col.allocs"), env.text("cli.col.state"), env.text("cli.col.eligible"))
	for _, node := range nodes {
		table.row(short(node.ID), safe(node.Name), node.Addr,
			fmt.Sprintf("%s/%s", cores(node.Used.CPU), cores(node.Capacity.CPU)),
			fmt.Sprintf("%s/%s", size(node.Used.Memory), size(node.Capacity.Memory)),
			fmt.Sprintf("%d/%d", len(node.Used.Devices), len(node.Devices)),
			strconv.Itoa(node.Used.Allocs), env.nodeFitness(&node.Node), env.text("cli.eligibility."+string(node.Eligibility)))
	}
	table.print()
}

func cores(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

func (env *Env) nodeStatusText(status structs.NodeStatus) string {
	text := env.text("cli.node_status." + string(status))
	switch status {
	case structs.NodeReady:
		return env.Stdout.paint(colourGreen, text)
	case structs.NodeLost:
		return env.Stdout.paint(colourRed, text)
	default:
		return env.Stdout.paint(colourYellow, text)
	}
}

// nodeFitness is a node's status, or the fault that keeps work from a ready one.
func (env *Env) nodeFitness(node *structs.Node) string {
	if fault := node.Unfit(); fault != nil && node.Status == structs.NodeReady {
		return env.Stdout.paint(colourRed, env.text("cli.node_status.unfit", "fault", safe(fault.Name)))
	}
	return env.nodeStatusText(node.Status)
}

func (env *Env) oneNode(client *api.Client, id string, output outputFlags, stale bool) error {
	node, _, err := client.Node(env.Context, id, &api.Query{Stale: stale})
	if err != nil {
		return err
	}
	cards := &api.NodeDevices{}
	if !output.forPrograms() && len(node.Devices) > 0 {
		if cards, err = client.NodeDevices(env.Context, node.ID); err != nil {
			return err
		}
	}
	return env.show(output, node, func() {
		fields := newTable(env.Stdout, "", "")
		fields.row("ID", node.ID)
		fields.row(env.text("cli.col.name"), safe(node.Name))
		fields.row(env.text("cli.col.address"), node.RPCAddr)
		fields.row(env.text("cli.col.version"), safe(node.Version))
		fields.row("CPU", fmt.Sprintf("%s/%s", cores(node.Used.CPU), cores(node.Capacity.CPU)))
		memory := fmt.Sprintf("%s/%s", size(node.Used.Memory), size(node.Capacity.Memory))
		if cards := node.ShortOfMemory(); cards > 0 {
			memory += "  " + env.Stdout.paint(colourYellow, env.text("cli.node.memory_short", "devices", size(cards)))
		}
		fields.row(env.text("cli.col.memory"), memory)
		fields.row(env.text("cli.col.drivers"), strings.Join(node.Drivers, " "))
		fields.row(env.text("cli.col.state"), env.nodeFitness(&node.Node))
		if why := env.reasonText(node.StatusReason); why != "" {
			fields.row(env.text("cli.col.why"), why)
		}
		fields.row(env.text("cli.col.eligible"), env.text("cli.eligibility."+string(node.Eligibility)))
		if node.Root {
			fields.row(env.text("cli.col.root"), env.Stdout.paint(colourYellow, env.yesNo(true)))
		}
		for i := range node.Faults {
			fields.row(safe(node.Faults[i].Name), env.Stdout.paint(colourRed, env.reasonText(node.Faults[i].Reason)))
		}
		for _, name := range slices.Sorted(maps.Keys(node.Attributes)) {
			fields.row(safe(name), safe(node.Attributes[name]))
		}
		fields.print()
		if len(cards.Devices) > 0 {
			fmt.Fprintln(env.Stdout)
			env.printCards([]api.NodeDevices{*cards}, false)
		}
		if len(node.Allocations) == 0 {
			return
		}
		fmt.Fprintln(env.Stdout)
		table := newTable(env.Stdout, env.text("cli.col.alloc"), env.text("cli.col.name"), env.text("cli.col.state"), env.text("cli.col.started"))
		for _, alloc := range node.Allocations {
			table.row(short(alloc.ID), safe(alloc.Name), env.allocText(&alloc), when(alloc.StartedAt))
		}
		table.print()
	})
}

// drainLook is how often a node that is being drained is looked at, at least:
// an allocation that leaves it need not be a newer version of it.
const drainLook = 500 * time.Millisecond

func nodeDrain(set *flag.FlagSet) func(*Env, []string) error {
	connection := declareConnection(set)
	deadline := declareSpan(set, "deadline", 0, "cli.flag.deadline")
	wait := set.Bool("wait", false, "cli.flag.wait_drain")
	return func(env *Env, args []string) error {
		id, err := one(args, "NODE")
		if err != nil {
			return err
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		_, err = client.DrainNode(env.Context, id, deadline.value)
		if err != nil {
			return err
		}
		fmt.Fprintln(env.Stdout, env.text("cli.node.draining", "node", safe(id)))
		if !*wait {
			return nil
		}
		query := &api.Query{Wait: drainLook}
		for {
			node, meta, err := client.Node(env.Context, id, query)
			if err != nil {
				return err
			}
			if node.Used.Allocs == 0 {
				fmt.Fprintln(env.Stdout, env.text("cli.node.drained", "node", safe(id)))
				return nil
			}
			query.Index = meta.Index
		}
	}
}

// nodeRemove shuts a node out. It still knows the key of gossip, which another
// one can replace at once.
func nodeRemove(set *flag.FlagSet) func(*Env, []string) error {
	connection, output := declareConnection(set), declareOutput(set)
	rotate := set.Bool("rotate-gossip", false, "cli.flag.rotate_gossip")
	return func(env *Env, args []string) error {
		id, err := one(args, "NODE")
		if err != nil {
			return err
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		changed, err := client.RemoveNode(env.Context, id)
		if err != nil {
			return err
		}
		if *rotate {
			fmt.Fprintln(env.Stderr, env.text("cli.node.removed", "node", safe(id)))
			return env.rotate(client, structs.KeyGossip, false, output, false)
		}
		return env.show(output, changed, func() {
			fmt.Fprintln(env.Stdout, env.text("cli.node.removed", "node", safe(id)))
			fmt.Fprintln(env.Stdout, env.text("cli.node.removed.hint"))
		})
	}
}

// nodeChange is a verb that calls one method with a node and says so.
func nodeChange(done string, change func(*api.Client, context.Context, string) (*api.Changed, error)) func(*flag.FlagSet) func(*Env, []string) error {
	return func(set *flag.FlagSet) func(*Env, []string) error {
		connection := declareConnection(set)
		return func(env *Env, args []string) error {
			id, err := one(args, "NODE")
			if err != nil {
				return err
			}
			client, err := env.connect(connection)
			if err != nil {
				return err
			}
			defer client.Close()
			if _, err := change(client, env.Context, id); err != nil {
				return err
			}
			fmt.Fprintln(env.Stdout, env.text(done, "node", safe(id)))
			return nil
		}
	}
}

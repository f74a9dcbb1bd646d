package command

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"strconv"
	"strings"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
)

func deviceVerbs() []verb {
	return []verb{
		{path: "top", setup: top},
		{path: "device list", setup: deviceList},
		{path: "device history", args: "NODE DEVICE", setup: deviceHistory},
		{path: "device clear", args: "NODE DEVICE", setup: deviceTreat(structs.DeviceClear, "cli.device.cleared")},
		{path: "device quarantine", args: "NODE DEVICE", setup: deviceTreat(structs.DeviceQuarantine, "cli.device.quarantined")},
		{path: "device reset", args: "NODE DEVICE", setup: deviceTreat(structs.DeviceReset, "cli.device.was_reset")},
	}
}

// deviceNodesPage is how many nodes are asked for at one time: a server asks all
// of them what they measure, and does not wait long.
const deviceNodesPage = 250

// allDevices reads the nodes with their devices, every page.
func allDevices(ctx context.Context, client *api.Client, filter api.DeviceFilter) ([]api.NodeDevices, error) {
	return everyPage(&api.Query{Limit: deviceNodesPage}, func(query *api.Query) ([]api.NodeDevices, string, error) {
		page, err := client.Devices(ctx, filter, query)
		if err != nil {
			return nil, "", err
		}
		return page.Nodes, page.Next, nil
	})
}

// declareDeviceFilter declares the flags that narrow a list of devices.
func declareDeviceFilter(set *flag.FlagSet) *api.DeviceFilter {
	filter := new(api.DeviceFilter)
	set.StringVar(&filter.Node, "node", "", "cli.flag.node_only")
	set.StringVar(&filter.Pool, "pool", "", "cli.flag.pool_only")
	return filter
}

func deviceList(set *flag.FlagSet) func(*Env, []string) error {
	filter := declareDeviceFilter(set)
	return reading("", func(env *Env, client *api.Client, _ string) ([]api.NodeDevices, error) {
		return allDevices(env.Context, client, *filter)
	}, func(env *Env, nodes []api.NodeDevices) {
		if !env.printCards(nodes, true) {
			fmt.Fprintln(env.Stdout, env.text("cli.device.none"))
		}
	})(set)
}

// deviceHistory prints what happened to one card.
func deviceHistory(set *flag.FlagSet) func(*Env, []string) error {
	connection, output := declareConnection(set), declareOutput(set)
	return func(env *Env, args []string) error {
		client, err := env.openTwo(connection, args, "NODE DEVICE")
		if err != nil {
			return err
		}
		defer client.Close()
		events, err := client.DeviceEvents(env.Context, args[0], args[1])
		if err != nil {
			return err
		}
		list := all(events.Events)
		return env.show(output, list, func() {
			for i := range list {
				env.printEvent(&list[i])
			}
			if len(list) == 0 {
				fmt.Fprintln(env.Stdout, env.text("cli.device.no_history"))
			}
		})
	}
}

// printCards prints a line for each card, and below the table what is wrong
// with those that are unhealthy. It reports whether there are any.
func (env *Env) printCards(nodes []api.NodeDevices, named bool) bool {
	heads := env.cardHeads()
	if named {
		heads = append([]string{env.text("cli.col.node")}, heads...)
	}
	table := newTable(env.Stdout, heads...)
	for i := range nodes {
		for k := range nodes[i].Devices {
			row := env.cardRow(&nodes[i].Devices[k])
			if named {
				row = append([]string{safe(nodes[i].Name)}, row...)
			}
			table.row(row...)
		}
	}
	if len(table.rows) == 0 {
		return false
	}
	table.print()
	for i := range nodes {
		if node := &nodes[i]; !node.Measured && len(node.Devices) > 0 {
			fmt.Fprintln(env.Stdout, env.text("cli.device.unmeasured", "node", safe(node.Name)))
		}
		env.printCures(&nodes[i])
	}
	return true
}

func (env *Env) cardHeads() []string {
	return []string{
		"#", "ID", env.text("cli.col.model"), env.text("cli.col.busy"), env.text("cli.col.memory"), env.text("cli.col.temperature"),
		env.text("cli.col.power"), env.text("cli.col.health"), env.text("cli.col.owner"),
	}
}

func (env *Env) cardRow(d *api.DeviceState) []string {
	return []string{
		cardNumber(d), safe(d.ID), modelText(d), busyText(d), cardMemory(d), gaugeText(d, device.GaugeTemperature, "°C"),
		gaugeText(d, device.GaugePower, "W"), env.healthText(d), env.ownerText(d),
	}
}

// cardNumber is how people name a card, as in 3, or 1(2) for the second part
// of card 1.
func cardNumber(d *api.DeviceState) string {
	if d.Slice > 0 {
		return fmt.Sprintf("%d(%d)", d.Index, d.Slice)
	}
	return strconv.Itoa(d.Index)
}

// modelText is the model of a card; of a part also how the card is divided, as in
// "A800 time-slice 1/4".
func modelText(d *api.DeviceState) string {
	text := cmp.Or(d.Model, d.Kind)
	if sharing := d.Attrs[device.AttrSharing]; sharing != "" {
		text += " " + sharing
		if slices := d.Attrs[device.AttrSlices]; d.Slice > 0 && slices != "" {
			text += fmt.Sprintf(" %d/%s", d.Slice, slices)
		}
	}
	return safe(text)
}

// gaugeText is a measured figure with its unit, "-" when it is not measured.
func gaugeText(d *api.DeviceState, gauge, unit string) string {
	value, measured := d.Gauges[gauge]
	if !measured {
		return "-"
	}
	return strconv.FormatFloat(value, 'f', 0, 64) + unit
}

func busyText(d *api.DeviceState) string {
	value, measured := d.Gauges[device.GaugeUtilization]
	if !measured {
		return "-"
	}
	return percent(100 * value)
}

// cardMemory is used and whole memory, or the whole alone.
func cardMemory(d *api.DeviceState) string {
	total := d.Memory
	if measured, ok := d.Gauges[device.GaugeMemoryTotal]; ok && measured > 0 {
		total = int64(measured)
	}
	used, measured := d.Gauges[device.GaugeMemoryUsed]
	switch {
	case measured:
		return size(int64(used)) + "/" + size(total)
	case total > 0:
		return "-/" + size(total)
	}
	return "-"
}

// healthText says in a word or two how a card is.
func (env *Env) healthText(d *api.DeviceState) string {
	if d.Action == string(device.ActNone) {
		return env.Stdout.paint(colourGreen, env.text("cli.health.well"))
	}
	colour := colourRed
	if d.Healthy {
		colour = colourYellow
	}
	return env.Stdout.paint(colour, env.text("cli.health."+knownAction(d)))
}

// knownAction is what a card asks for; an action of a newer version counts as
// cordoned.
func knownAction(d *api.DeviceState) string {
	if action := device.Action(d.Action); action != device.ActNone && action.Known() {
		return d.Action
	}
	return string(device.ActCordon)
}

// ownerText names the rank that a card was given to.
func (env *Env) ownerText(d *api.DeviceState) string {
	switch {
	case !d.Used:
		return "-"
	case d.Owner == nil:
		return env.text("cli.device.hidden")
	}
	name := safe(d.Owner.Job)
	if d.Owner.Subjob > 0 {
		name += fmt.Sprintf(" s%d", d.Owner.Subjob)
	}
	return env.text("cli.device.owner", "job", name, "rank", d.Owner.Rank)
}

// printCures says of every card that is unhealthy what is wrong and what helps.
func (env *Env) printCures(node *api.NodeDevices) {
	for i := range node.Devices {
		d := &node.Devices[i]
		if d.Action == string(device.ActNone) {
			continue
		}
		what := env.reasonText(d.Health)
		if what == "" {
			what = env.text("device.fault", "device", safe(d.ID), "code", safe(cmp.Or(d.Attrs[device.AttrFault], "-")))
		}
		if since := d.Attrs[device.AttrFaultSince]; since != "" {
			what = env.text("cli.device.since", "what", what, "since", safe(since))
		}
		fmt.Fprintln(env.Stdout, env.text("cli.device.sick", "node", safe(node.Name), "number", cardNumber(d), "what", what))
		fmt.Fprintf(env.Stdout, "  %s\n", env.text("cli.cure."+knownAction(d), "node", safe(node.Name), "device", shownDevice(d)))
	}
}

// shownDevice is how a command names a card: by its number, or a part of one
// by its id.
func shownDevice(d *api.DeviceState) string {
	if d.Slice > 0 {
		return safe(d.ID)
	}
	return strconv.Itoa(d.Index)
}

// deviceTreat is a verb by which an operator has a node do something to a
// device.
func deviceTreat(act structs.DeviceAct, done string) func(*flag.FlagSet) func(*Env, []string) error {
	return func(set *flag.FlagSet) func(*Env, []string) error {
		connection, reason := declareConnection(set), ""
		if act == structs.DeviceQuarantine {
			set.StringVar(&reason, "reason", "", "cli.flag.quarantine_reason")
		}
		return func(env *Env, args []string) error {
			client, err := env.openTwo(connection, args, strings.Join(strings.Fields("NODE DEVICE")[min(len(args), 1):], " "))
			if err != nil {
				return err
			}
			defer client.Close()
			treated, err := client.TreatDevice(env.Context, args[0], api.DeviceTreatRequest{Device: args[1], Act: act, Reason: reason})
			if err != nil {
				return err
			}
			fmt.Fprintln(env.Stdout, env.text(done, "node", safe(args[0]), "device", safe(treated.Device)))
			return nil
		}
	}
}

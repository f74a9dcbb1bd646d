package command

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
)

// Rhythm and bounds of top.
const (
	topEvery    = 2 * time.Second
	topEveryMin = 500 * time.Millisecond
	topPatience = 10 * time.Second // with one look at the cluster
	topJobsMax  = 100              // of each state
)

// topData is one look at a cluster.
type topData struct {
	At    time.Time         `json:"at"`
	Nodes []api.NodeDevices `json:"nodes"`
	Jobs  []api.JobSummary  `json:"jobs"` // that have not ended, newest first within a state
}

// topOrder is what nodes and cards are ordered by.
type topOrder string

// The orders, in the order in which a key goes through them.
const (
	orderName        topOrder = "name"
	orderBusy        topOrder = "busy"
	orderMemory      topOrder = "memory"
	orderTemperature topOrder = "temperature"
)

func topOrders() []topOrder {
	return []topOrder{orderName, orderBusy, orderMemory, orderTemperature}
}

// next is the order after this one.
func (o topOrder) next() topOrder {
	orders := topOrders()
	return orders[(slices.Index(orders, o)+1)%len(orders)]
}

// topView is what a person wants to see of the data.
type topView struct {
	data    topData
	order   topOrder
	narrow  string // only what names this
	typing  bool   // narrow is being typed
	skip    int    // cards above the first one shown
	trouble string // why the data is old, "" when it is not
}

func top(set *flag.FlagSet) func(*Env, []string) error {
	connection, output, filter := declareConnection(set), declareOutput(set), declareDeviceFilter(set)
	every := declareSpan(set, "every", topEvery, "cli.flag.top_every")
	order := set.String("sort", string(orderName), "cli.flag.top_sort")
	return func(env *Env, args []string) error {
		if err := none(args); err != nil {
			return err
		}
		if !slices.Contains(topOrders(), topOrder(*order)) {
			return usagef("cli.top.order", "value", safe(*order))
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		look := func(ctx context.Context) (topData, error) { return lookAround(ctx, client, *filter) }
		view := topView{order: topOrder(*order)}
		if terminal := env.fullScreen(); terminal != nil && !output.forPrograms() {
			return env.watchTop(terminal, view, max(every.value.Std(), topEveryMin), look)
		}
		if view.data, err = look(env.Context); err != nil {
			return err
		}
		return env.show(output, view.data, func() {
			for _, line := range env.topLines(&view, 0, 0) {
				fmt.Fprintln(env.Stdout, line)
			}
		})
	}
}

// lookAround asks for everything that top shows.
func lookAround(ctx context.Context, client *api.Client, filter api.DeviceFilter) (topData, error) {
	ctx, cancel := context.WithTimeout(ctx, topPatience)
	defer cancel()
	data := topData{At: time.Now(), Jobs: []api.JobSummary{}}
	var err error
	if data.Nodes, err = allDevices(ctx, client, filter); err != nil {
		return data, err
	}
	for _, state := range []structs.JobState{structs.JobRunning, structs.JobStarting, structs.JobStopping, structs.JobPaused, structs.JobQueued} {
		list, _, err := client.Jobs(ctx, api.JobFilter{State: state}, &api.Query{Limit: topJobsMax})
		if err != nil {
			return data, err
		}
		data.Jobs = append(data.Jobs, list.Jobs...)
	}
	return data, nil
}

// topLines draws a view for a screen of so many cells and lines; 0 means all
// that there is.
func (env *Env) topLines(v *topView, width, height int) []string {
	nodes, cards, jobs := v.chosen()
	sections := [][]string{env.topNodes(nodes), env.topCards(cards), env.topJobs(jobs)}
	if height > 0 {
		v.skip = max(0, min(v.skip, len(cards)-1))
		if v.skip > 0 {
			sections[1] = append(sections[1][:1:1], sections[1][1+v.skip:]...)
		}
		fit(sections, height-2-len(sections))
	}
	lines := []string{env.topSum(v)}
	for _, section := range sections {
		lines = append(append(lines, ""), section...)
	}
	if height > 0 {
		for len(lines) < height-1 {
			lines = append(lines, "")
		}
		lines = append(lines[:height-1], env.topKeys(v))
	}
	for i := range lines {
		if width > 0 {
			lines[i] = clip(lines[i], width)
		}
	}
	return lines
}

// fit shortens sections until they fit into so many lines, the longest one
// first: what is short stays whole.
func fit(sections [][]string, lines int) {
	total := 0
	for _, s := range sections {
		total += len(s)
	}
	for ; total > max(lines, 0); total-- {
		longest := 0
		for i, s := range sections {
			if len(s) > len(sections[longest]) {
				longest = i
			}
		}
		if len(sections[longest]) == 0 {
			return
		}
		sections[longest] = sections[longest][:len(sections[longest])-1]
	}
}

// topCard is a card with its node.
type topCard struct {
	node *api.NodeDevices
	*api.DeviceState
}

// chosen returns what is to be shown, in its order.
func (v *topView) chosen() (nodes []*api.NodeDevices, cards []topCard, jobs []*api.JobSummary) {
	wanted := func(texts ...string) bool {
		return v.narrow == "" || slices.ContainsFunc(texts, func(text string) bool {
			return strings.Contains(strings.ToLower(text), strings.ToLower(v.narrow))
		})
	}
	for i := range v.data.Nodes {
		node := &v.data.Nodes[i]
		owned := false
		for k := range node.Devices {
			card := topCard{node, &node.Devices[k]}
			texts := []string{node.Name, node.Pool, card.ID, card.Model}
			if o := card.Owner; o != nil {
				texts = append(texts, o.Job, o.User, o.Project)
			}
			if wanted(texts...) {
				cards, owned = append(cards, card), true
			}
		}
		if owned || wanted(node.Name, node.Pool) {
			nodes = append(nodes, node)
		}
	}
	for i := range v.data.Jobs {
		if job := &v.data.Jobs[i]; wanted(job.Name, job.ID, job.User, job.Project, job.Pool) {
			jobs = append(jobs, job)
		}
	}
	if v.order != orderName {
		slices.SortStableFunc(nodes, func(a, b *api.NodeDevices) int { return cmp.Compare(v.nodeWeight(b), v.nodeWeight(a)) })
		slices.SortStableFunc(cards, func(a, b topCard) int { return cmp.Compare(v.cardWeight(b.DeviceState), v.cardWeight(a.DeviceState)) })
	}
	return nodes, cards, jobs
}

// cardWeight is what a card is ordered by; what is not measured comes last.
func (v *topView) cardWeight(d *api.DeviceState) float64 {
	gauge := map[topOrder]string{
		orderBusy: device.GaugeUtilization, orderMemory: device.GaugeMemoryUsed, orderTemperature: device.GaugeTemperature,
	}[v.order]
	if value, measured := d.Gauges[gauge]; measured {
		return value
	}
	return -1
}

// nodeWeight is what a node is ordered by: its hottest card, or what is used of
// the machine.
func (v *topView) nodeWeight(n *api.NodeDevices) float64 {
	switch v.order {
	case orderMemory:
		return float64(max(n.MemoryBusy, n.MemoryHeld))
	case orderBusy:
		if busy, ok := meanBusy(n); ok {
			return busy
		}
		return -1 + n.CPUBusy/max(n.CPU, 1)
	}
	hottest := -1.0
	for i := range n.Devices {
		hottest = max(hottest, v.cardWeight(&n.Devices[i]))
	}
	return hottest
}

// meanBusy is how busy the measured cards of a node are.
func meanBusy(n *api.NodeDevices) (mean float64, measured bool) {
	sum, count := 0.0, 0
	for i := range n.Devices {
		if busy, ok := n.Devices[i].Gauges[device.GaugeUtilization]; ok {
			sum += busy
			count++
		}
	}
	if count == 0 {
		return 0, false
	}
	return sum / float64(count), true
}

// topSum says in one line how the cluster stands.
func (env *Env) topSum(v *topView) string {
	ready, cards, used, sick := 0, 0, 0, 0
	for i := range v.data.Nodes {
		node := &v.data.Nodes[i]
		if node.Status == structs.NodeReady {
			ready++
		}
		for k := range node.Devices {
			cards++
			if node.Devices[k].Used {
				used++
			}
			if !node.Devices[k].Healthy {
				sick++
			}
		}
	}
	running := 0
	for i := range v.data.Jobs {
		if v.data.Jobs[i].State == structs.JobRunning {
			running++
		}
	}
	return env.text("cli.top.sum", "time", v.data.At.Format(time.TimeOnly), "ready", ready, "nodes", len(v.data.Nodes),
		"used", used, "cards", cards, "sick", sick, "running", running, "jobs", len(v.data.Jobs))
}

// topKeys is the last line: what keys do, or what is being typed.
func (env *Env) topKeys(v *topView) string {
	switch {
	case v.typing:
		return env.text("cli.top.typing", "text", safe(v.narrow))
	case v.trouble != "":
		return env.Stdout.paint(colourRed, env.text("cli.top.trouble", "cause", safe(v.trouble)))
	}
	line := env.text("cli.top.keys", "order", env.text("cli.top.order_"+string(v.order)))
	if v.narrow != "" {
		line += "  " + env.text("cli.top.narrowed", "text", safe(v.narrow))
	}
	return env.Stdout.paint(colourDim, line)
}

func (env *Env) topNodes(nodes []*api.NodeDevices) []string {
	table := newTable(env.Stdout, env.text("cli.col.node"), env.text("cli.col.pool"), env.text("cli.col.state"), env.text("cli.col.cpu_busy"),
		env.text("cli.col.cpu_held"), env.text("cli.col.memory_busy"), env.text("cli.col.memory_held"), env.text("cli.col.devices"), env.text("cli.col.busy"))
	for _, n := range nodes {
		state := env.nodeStatusText(n.Status)
		if n.Status == structs.NodeReady && n.Eligibility != structs.NodeEligible {
			state = env.Stdout.paint(colourYellow, env.text("cli.eligibility."+string(n.Eligibility)))
		}
		used := 0
		for i := range n.Devices {
			if n.Devices[i].Used {
				used++
			}
		}
		busyCPU, busyMemory, busyCards := "-", "-", "-"
		if n.CPUBusy > 0 {
			busyCPU = strconv.FormatFloat(n.CPUBusy, 'f', 1, 64)
		}
		if n.MemoryBusy > 0 {
			busyMemory = size(n.MemoryBusy)
		}
		if mean, measured := meanBusy(n); measured {
			busyCards = percent(100 * mean)
		}
		table.row(safe(n.Name), safe(n.Pool), state, busyCPU, cores(n.CPUHeld)+"/"+cores(n.CPU), busyMemory,
			size(n.MemoryHeld)+"/"+size(n.Memory), fmt.Sprintf("%d/%d", used, len(n.Devices)), busyCards)
	}
	return table.lines()
}

func (env *Env) topCards(cards []topCard) []string {
	if len(cards) == 0 {
		return []string{env.text("cli.device.none")}
	}
	table := newTable(env.Stdout, append([]string{env.text("cli.col.node")}, env.cardHeads()...)...)
	for _, card := range cards {
		table.row(append([]string{safe(card.node.Name)}, env.cardRow(card.DeviceState)...)...)
	}
	return table.lines()
}

func (env *Env) topJobs(jobs []*api.JobSummary) []string {
	if len(jobs) == 0 {
		return []string{env.text("cli.top.no_jobs")}
	}
	table := newTable(env.Stdout, "ID", env.text("cli.col.job"), env.text("cli.col.project"), env.text("cli.col.user"), env.text("cli.col.state"),
		env.text("cli.col.nodes"), env.text("cli.col.attempt"), env.text("cli.col.started"), env.text("cli.col.why"))
	for _, job := range jobs {
		table.row(short(job.ID), safe(job.Name), safe(job.Project), safe(job.User), env.stateText(env.Stdout, job.State), strconv.Itoa(job.Nodes),
			strconv.FormatUint(job.Attempt, 10), when(job.StartedAt), env.statusText(job.JobStatus))
	}
	return table.lines()
}

package command

import (
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"nomadlike/jobspec"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
)

// jobUsage shows what each rank of a job uses now, or used while it ran.
func jobUsage(set *flag.FlagSet) func(*Env, []string) error {
	connection, output := declareConnection(set), declareOutput(set)
	subjob := set.Int("subjob", 0, "cli.flag.subjob")
	past := set.Bool("past", false, "cli.flag.job_past")
	attempt := set.Uint64("attempt", 0, "cli.flag.job_past_attempt")
	rank := set.Int("rank", -1, "cli.flag.job_past_rank")
	since := declareSpan(set, "since", 0, "cli.flag.job_past_since")
	points := set.Int("points", historyRows, "cli.flag.past_points")
	return func(env *Env, args []string) error {
		id, err := one(args, "JOB")
		if err != nil {
			return err
		}
		filter := api.JobHistoryFilter{Subjob: *subjob, Attempt: *attempt, Since: since.value.Std(), Points: *points}
		if *rank >= 0 {
			filter.Rank = rank
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		if !*past && filter.Attempt == 0 && filter.Rank == nil && filter.Since == 0 {
			figures, err := client.JobUsage(env.Context, id, *subjob)
			if err != nil {
				return err
			}
			return env.show(output, figures, func() { env.printUsage(figures) })
		}
		found, err := client.JobHistory(env.Context, id, filter)
		if err != nil {
			return err
		}
		return env.show(output, found, func() { env.printJobHistory(found, filter.Rank != nil) })
	}
}

// rankColumns are the figures of a rank over time.
func (env *Env) rankColumns() []historyColumn {
	bytes := func(v float64) string { return size(int64(v)) }
	return []historyColumn{
		{"cli.col.cores", structs.GaugeCores, func(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }},
		{"cli.col.memory", device.GaugeMemoryUsed, bytes},
		{"cli.col.busy", structs.GaugeCardUse, func(v float64) string { return percent(100 * v) }},
		{"cli.col.card_memory", structs.GaugeCardMemory, bytes},
		{"cli.col.temperature", structs.GaugeCardTemperature, func(v float64) string { return strconv.FormatFloat(v, 'f', 0, 64) + "°C" }},
		{"cli.col.power", structs.GaugeCardPower, func(v float64) string { return strconv.FormatFloat(v, 'f', 0, 64) + "W" }},
	}
}

// printJobHistory prints what one rank used over time, or a line for each rank with
// what it used in the whole of the time.
func (env *Env) printJobHistory(found *api.JobHistory, overTime bool) {
	if overTime && len(found.Ranks) == 1 {
		env.printSeries(found.At, found.Ranks[0].Series, env.rankColumns())
	} else {
		env.printRankHistories(found)
	}
	for _, node := range found.Away {
		fmt.Fprintln(env.Stderr, env.text("cli.metrics.away", "node", safe(node)))
	}
}

func (env *Env) printRankHistories(found *api.JobHistory) {
	columns := env.rankColumns()
	heads := []string{env.text("cli.col.rank"), env.text("cli.col.node"), env.text("cli.col.state")}
	for _, column := range columns {
		heads = append(heads, env.text(column.head))
	}
	table := newTable(env.Stdout, heads...)
	for i := range found.Ranks {
		r := &found.Ranks[i]
		row := []string{strconv.Itoa(r.Rank), safe(r.Node), string(r.Status)}
		for _, column := range columns {
			cell := "-"
			if value, known := wholeHistory(r.Series, column.gauge); known {
				cell = column.text(value)
			}
			row = append(row, cell)
		}
		table.row(row...)
	}
	table.print()
	if found.More > 0 {
		fmt.Fprintln(env.Stdout, env.text("cli.job.figures_more", "count", found.More))
	}
}

// wholeHistory is a figure over the whole of the time: the mean of cores, use and
// power, and the highest of memory and temperature.
func wholeHistory(series []structs.GaugeHistory, gauge string) (float64, bool) {
	at := slices.IndexFunc(series, func(one structs.GaugeHistory) bool { return one.Gauge == gauge })
	if at < 0 {
		return 0, false
	}
	sum, most, count := 0.0, 0.0, 0
	for _, value := range series[at].Values {
		if value != nil {
			sum, most, count = sum+*value, max(most, *value), count+1
		}
	}
	switch {
	case count == 0:
		return 0, false
	case gauge == structs.GaugeCores, gauge == structs.GaugeCardUse, gauge == structs.GaugeCardPower:
		return sum / float64(count), true
	}
	return most, true
}

func (env *Env) printUsage(figures *api.JobUsage) {
	table := newTable(env.Stdout, env.text("cli.col.rank"), env.text("cli.col.node"), env.text("cli.col.state"), env.text("cli.col.cores"),
		env.text("cli.col.memory"), env.text("cli.col.cards"))
	for i := range figures.Ranks {
		r := &figures.Ranks[i]
		cores, memory := "-", "-"
		if r.Measured {
			cores = strconv.FormatFloat(r.CPUBusy, 'f', 1, 64) + "/" + strconv.FormatFloat(r.CPU, 'f', -1, 64)
			memory = size(r.MemoryUsed) + "/" + size(r.Memory)
		}
		table.row(strconv.Itoa(r.Rank), safe(r.Node), string(r.Status), cores, memory, cardUses(r.Devices))
	}
	table.print()
	if figures.More > 0 {
		fmt.Fprintln(env.Stdout, env.text("cli.job.figures_more", "count", figures.More))
	}
}

// cardUses is one word for each card of a rank, as in "0:97% 1:95%".
func cardUses(cards []api.RankDevice) string {
	words := make([]string, len(cards))
	for i := range cards {
		use := "-"
		if busy, measured := cards[i].Gauges[device.GaugeUtilization]; measured {
			use = percent(100 * busy)
		}
		words[i] = strconv.Itoa(cards[i].Index) + ":" + use
	}
	return strings.Join(words, " ")
}

// changesOf reads -set flags of job fmt: PLACE=VALUE, where VALUE is JSON, or
// else a text.
func changesOf(flags []string) ([]jobspec.Change, error) {
	changes := make([]jobspec.Change, len(flags))
	for i, one := range flags {
		at, text, ok := strings.Cut(one, "=")
		if !ok {
			return nil, usagef("cli.job.bad_set", "value", safe(one))
		}
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			value = text
		}
		changes[i] = jobspec.Change{At: at, Value: value}
	}
	return changes, nil
}

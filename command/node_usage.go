package command

import (
	"flag"
	"fmt"
	"strconv"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
)

// pastRows is how many lines are printed unless told.
const historyRows = 24

// nodeUsage prints what a node, or one of its cards, measured lately.
func nodeUsage(set *flag.FlagSet) func(*Env, []string) error {
	var filter api.HistoryFilter
	set.StringVar(&filter.Device, "device", "", "cli.flag.past_device")
	since := declareSpan(set, "since", 24*time.Hour, "cli.flag.past_since")
	set.IntVar(&filter.Points, "points", historyRows, "cli.flag.past_points")
	return reading("NODE", func(env *Env, client *api.Client, id string) (*api.NodeHistory, error) {
		filter.Since = since.value.Std()
		return client.NodeHistory(env.Context, id, filter)
	}, func(env *Env, past *api.NodeHistory) { env.printNodeHistory(past, filter.Device != "") })(set)
}

// historyColumn is a column of a table of the past.
type historyColumn struct {
	head  string // in the catalogue
	gauge string
	text  func(float64) string
}

// historyColumns are those of a card, or of a machine.
func (env *Env) historyColumns(card bool) []historyColumn {
	bytes := func(v float64) string { return size(int64(v)) }
	whole := func(unit string) func(float64) string {
		return func(v float64) string { return strconv.FormatFloat(v, 'f', 0, 64) + unit }
	}
	if !card {
		return []historyColumn{
			{"cli.col.cores", structs.GaugeCores, func(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }},
			{"cli.col.memory", device.GaugeMemoryUsed, bytes},
		}
	}
	return []historyColumn{
		{"cli.col.busy", device.GaugeUtilization, func(v float64) string { return percent(100 * v) }},
		{"cli.col.memory", device.GaugeMemoryUsed, bytes},
		{"cli.col.temperature", device.GaugeTemperature, whole("°C")},
		{"cli.col.power", device.GaugePower, whole("W")},
		{"cli.col.ecc", device.GaugeECCUncorrected, whole("")},
		{"cli.col.health", structs.GaugeHealthy, env.healthOverTime},
	}
}

// healthOverTime says whether a card was well all the time.
func (env *Env) healthOverTime(least float64) string {
	if least >= 1 {
		return env.Stdout.paint(colourGreen, env.text("cli.health.well"))
	}
	return env.Stdout.paint(colourRed, env.text("cli.health.was_unwell"))
}

// printNodeHistory prints the past of a machine, or of one card.
func (env *Env) printNodeHistory(past *api.NodeHistory, card bool) {
	series := past.Machine
	if card {
		series = nil
		if len(past.Devices) > 0 {
			series = past.Devices[0].Series
		}
	}
	env.printSeries(past.At, series, env.historyColumns(card))
}

// printSeries prints a line for each point at which something was measured.
func (env *Env) printSeries(times []structs.UnixNano, series []structs.GaugeHistory, columns []historyColumn) {
	heads := []string{env.text("cli.col.time")}
	for _, column := range columns {
		heads = append(heads, env.text(column.head))
	}
	table := newTable(env.Stdout, heads...)
	for i, at := range times {
		row, known := []string{when(at)}, false
		for _, column := range columns {
			cell := "-"
			if value := valueAt(series, column.gauge, i); value != nil {
				cell, known = column.text(*value), true
			}
			row = append(row, cell)
		}
		if known {
			table.row(row...)
		}
	}
	if len(table.rows) == 0 {
		fmt.Fprintln(env.Stdout, env.text("cli.node.no_past"))
		return
	}
	table.print()
}

// valueAt is one value of a figure; nil: it was not measured.
func valueAt(series []structs.GaugeHistory, gauge string, i int) *float64 {
	for k := range series {
		if series[k].Gauge == gauge && i < len(series[k].Values) {
			return series[k].Values[i]
		}
	}
	return nil
}

package command

import (
	"encoding/json"
	"flag"
	"fmt"
	"strconv"
	"strings"

	"nomadlike/jobspec"
	"nomadlike/nomadlike/api"
	"nomadlike/plugins/device"
)

// jobFigures shows what each rank of a job uses now.
func jobFigures(set *flag.FlagSet) func(*Env, []string) error {
	subjob := set.Int("subjob", 0, "cli.flag.subjob")
	return reading("JOB", func(env *Env, client *api.Client, id string) (*api.JobFigures, error) {
		return client.JobFigures(env.Context, id, *subjob)
	}, (*Env).printFigures)(set)
}

func (env *Env) printFigures(figures *api.JobFigures) {
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

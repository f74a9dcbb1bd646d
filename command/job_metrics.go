package command

import (
	"cmp"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// Sizes of drawn curves, in characters.
const (
	sparkWidth  = 32
	curveWidth  = 72
	curveHeight = 12
)

func jobMetrics(set *flag.FlagSet) func(*Env, []string) error {
	connection, output := declareConnection(set), declareOutput(set)
	attempt := set.Uint64("attempt", 0, "cli.flag.attempt")
	rank := set.Int("rank", -1, "cli.flag.rank")
	subjob := set.Int("subjob", -1, "cli.flag.subjob")
	name := set.String("name", "", "cli.flag.metric_name")
	points := set.Int("points", 0, "cli.flag.metric_points")
	return func(env *Env, args []string) error {
		filter := api.MetricsFilter{Attempt: *attempt, Points: *points}
		if *rank >= 0 {
			filter.Rank = rank
		}
		if *subjob >= 0 {
			filter.Subjob = subjob
		}
		if *name != "" {
			filter.Names = strings.Split(*name, ",")
		}
		client, detail, err := env.openJob(connection, args)
		if err != nil {
			return err
		}
		defer client.Close()
		found, err := client.JobMetrics(env.Context, detail.Job.ID, filter)
		if err != nil {
			return err
		}
		return env.show(output, found, func() { env.printMetrics(found, detail.Job.SubjobCount() > 1, len(filter.Names) == 1) })
	}
}

// printMetrics prints a line for each series, and below it the curve when one
// name was asked for.
func (env *Env) printMetrics(found *api.JobMetrics, batch, curves bool) {
	head := []string{
		env.text("cli.col.name"), env.text("cli.col.source"), env.text("cli.col.rank"), env.text("cli.col.attempt"), env.text("cli.col.step"),
		env.text("cli.col.last"), env.text("cli.col.min"), env.text("cli.col.max"), env.text("cli.col.curve"),
	}
	if batch {
		head = slices.Insert(head, 2, env.text("cli.col.subjob"))
	}
	table := newTable(env.Stdout, head...)
	for i := range found.Ranks {
		r := &found.Ranks[i]
		for k := range r.Series {
			s := &r.Series[k]
			row := []string{
				safe(s.Name), safe(s.Source), strconv.Itoa(r.Rank), strconv.FormatUint(r.Attempt, 10), strconv.FormatInt(s.Last.Step, 10),
				lastText(s), metricText(s.Min), metricText(s.Max), spark(s.Points, sparkWidth),
			}
			if batch {
				row = slices.Insert(row, 2, strconv.Itoa(r.Subjob))
			}
			table.row(row...)
		}
	}
	if len(table.rows) == 0 {
		fmt.Fprintln(env.Stdout, env.text("cli.metrics.none"))
	} else {
		table.print()
	}
	if curves {
		env.printCurves(found, batch)
	}
	if found.LeftOut > 0 {
		fmt.Fprintln(env.Stderr, env.text("cli.metrics.left_out", "count", found.LeftOut))
	}
	for _, node := range found.Away {
		fmt.Fprintln(env.Stderr, env.text("cli.metrics.away", "node", safe(node)))
	}
}

// printCurves draws one curve for each subjob, rank and source, through all
// attempts. The curves of a batch say of which subjob they are.
func (env *Env) printCurves(found *api.JobMetrics, batch bool) {
	type key struct {
		subjob, rank int
		source       string
	}
	joined := map[key][]structs.MetricPoint{}
	var order []key
	for i := len(found.Ranks) - 1; i >= 0; i-- { // oldest attempt first
		r := &found.Ranks[i]
		for k := range r.Series {
			at := key{r.Subjob, r.Rank, r.Series[k].Source}
			if _, known := joined[at]; !known {
				order = append(order, at)
			}
			joined[at] = append(joined[at], r.Series[k].Points...)
		}
	}
	slices.SortFunc(order, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.subjob, b.subjob), cmp.Compare(a.rank, b.rank), cmp.Compare(a.source, b.source))
	})
	for _, at := range order {
		fmt.Fprintln(env.Stdout)
		title := env.text("cli.metrics.curve", "rank", at.rank, "source", safe(at.source))
		if batch {
			title = env.text("cli.metrics.curve_subjob", "subjob", at.subjob, "rank", at.rank, "source", safe(at.source))
		}
		fmt.Fprintln(env.Stdout, title)
		for _, line := range curve(joined[at], curveWidth, curveHeight) {
			fmt.Fprintln(env.Stdout, line)
		}
	}
}

// lastText is the newest value, NaN when the newest was none.
func lastText(s *structs.MetricSeries) string {
	if s.Count == 0 || s.NotFiniteAt > s.Last.At {
		return "NaN"
	}
	return metricText(s.Last.Value)
}

func metricText(v float64) string { return strconv.FormatFloat(v, 'g', 5, 64) }

// columns returns the mean of the points that fall into each of some columns by
// step; a column without points repeats the one before.
func columns(points []structs.MetricPoint, width int) []float64 {
	if len(points) == 0 {
		return nil
	}
	first, last := points[0].Step, points[0].Step
	for _, p := range points {
		first, last = min(first, p.Step), max(last, p.Step)
	}
	sums, counts := make([]float64, width), make([]int, width)
	for _, p := range points {
		at := 0
		if last > first {
			at = int(float64(p.Step-first) / float64(last-first) * float64(width-1))
		}
		sums[at] += p.Value
		counts[at]++
	}
	var values []float64
	for i := range sums {
		switch {
		case counts[i] > 0:
			values = append(values, sums[i]/float64(counts[i]))
		case last > first:
			values = append(values, values[len(values)-1])
		}
	}
	return values
}

// spark draws points as one line.
func spark(points []structs.MetricPoint, width int) string {
	const bars = "▁▂▃▄▅▆▇█"
	var b strings.Builder
	for _, level := range levels(columns(points, width), len([]rune(bars))) {
		b.WriteRune([]rune(bars)[level])
	}
	return b.String()
}

// levels turns values into heights from 0 below n.
func levels(values []float64, n int) []int {
	if len(values) == 0 {
		return nil
	}
	low, high := slices.Min(values), slices.Max(values)
	out := make([]int, len(values))
	for i, v := range values {
		if high > low {
			out[i] = min(int((v-low)/(high-low)*float64(n)), n-1)
		}
	}
	return out
}

// curve draws points as a picture with its scales.
func curve(points []structs.MetricPoint, width, height int) []string {
	values := columns(points, width)
	if len(values) == 0 {
		return nil
	}
	heights := levels(values, height)
	lines := make([]string, 0, height+1)
	for row := height - 1; row >= 0; row-- {
		label := ""
		switch row {
		case height - 1:
			label = metricText(slices.Max(values))
		case 0:
			label = metricText(slices.Min(values))
		}
		var b strings.Builder
		fmt.Fprintf(&b, "%12s │", label)
		for _, h := range heights {
			if h == row {
				b.WriteRune('•')
			} else {
				b.WriteByte(' ')
			}
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	first, last := points[0].Step, points[0].Step
	for _, p := range points {
		first, last = min(first, p.Step), max(last, p.Step)
	}
	left, right := strconv.FormatInt(first, 10), strconv.FormatInt(last, 10)
	return append(lines, fmt.Sprintf("%12s └%s%s%s", "", left, strings.Repeat("─", max(1, len(values)-len(left)-len(right))), right))
}

package command

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/outlook"
)

// Size of the chart of a load, in characters.
const (
	loadWidth  = 72
	loadHeight = 8
)

func outlookVerbs() []verb {
	return []verb{{path: "outlook", setup: outlookVerb}}
}

func outlookVerb(set *flag.FlagSet) func(*Env, []string) error {
	pool := set.String("pool", "", "cli.flag.pool_only")
	past := set.Bool("past", false, "cli.flag.outlook_past")
	ago := declareSpan(set, "ago", 0, "cli.flag.outlook_ago")
	return reading("", func(env *Env, client *api.Client, _ string) (any, error) {
		if *past || ago.value != 0 {
			return pastOf(env, client, *pool, ago.value)
		}
		return client.Outlook(env.Context, *pool)
	}, func(env *Env, value any) {
		switch found := value.(type) {
		case *api.Outlook:
			env.printOutlook(found, *pool)
		case *outlook.Past:
			env.printPast(found)
		}
	})(set)
}

// printOutlook draws the load of all pools, or of the one that was asked for, and
// lists what pools hold and what could start now.
func (env *Env) printOutlook(found *api.Outlook, pool string) {
	drawn := &found.All
	if pool != "" {
		drawn = nil
		if len(found.Pools) > 0 {
			drawn = &found.Pools[0]
		}
	}
	if drawn == nil || drawn.Total[found.Now] == 0 {
		fmt.Fprintln(env.Stdout, env.text("cli.outlook.empty"))
		return
	}
	title := "cli.outlook.cards"
	if drawn.CountsNodes {
		title = "cli.outlook.nodes"
	}
	fmt.Fprintln(env.Stdout, env.text(title, "used", drawn.Used[found.Now], "total", drawn.Total[found.Now], "free", freeAt(drawn, found.Now)))
	for _, line := range env.loadChart(&found.Load, drawn) {
		fmt.Fprintln(env.Stdout, line)
	}
	fmt.Fprintln(env.Stdout, env.text("cli.outlook.legend"))
	fmt.Fprintln(env.Stdout)
	env.printPoolLoads(&found.Load)
	env.printStartable(found.CouldStart)
}

// freeAt is how many cards are free.
func freeAt(p *outlook.PoolLoad, i int) int {
	return p.Total[i] - p.Used[i] - p.Held[i] - p.Foreseen[i] - p.Away[i] - p.Reserved[i]
}

// printPoolLoads lists the pools, now and in some hours.
func (env *Env) printPoolLoads(found *outlook.Load) {
	if len(found.Pools) == 0 {
		return
	}
	ahead := []time.Duration{time.Hour, 4 * time.Hour, 12 * time.Hour}
	heads := []string{
		env.text("cli.col.pool"), env.text("cli.col.total"), env.text("cli.col.used"), env.text("cli.outlook.held"),
		env.text("cli.col.away"), env.text("cli.col.free"),
	}
	for _, span := range ahead {
		heads = append(heads, env.text("cli.outlook.used_in", "hours", int(span.Hours())))
	}
	table := newTable(env.Stdout, heads...)
	for i := range found.Pools {
		p := &found.Pools[i]
		now := found.Now
		name := safe(p.Pool)
		if p.CountsNodes {
			name = env.text("cli.outlook.in_nodes", "pool", name)
		}
		row := []string{name}
		for _, n := range []int{p.Total[now], p.Used[now], p.Held[now], p.Away[now], freeAt(p, now)} {
			row = append(row, strconv.Itoa(n))
		}
		for _, span := range ahead {
			at := placeOf(found.Times, found.At.Add(span))
			row = append(row, strconv.Itoa(p.Used[at]+p.Foreseen[at]))
		}
		table.row(row...)
	}
	table.print()
}

// placeOf is the last of some times that is not after one.
func placeOf(times []structs.UnixNano, at structs.UnixNano) int {
	place := 0
	for i, t := range times {
		if t <= at {
			place = i
		}
	}
	return place
}

// printStartable lists what could start now.
func (env *Env) printStartable(list []outlook.Startable) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintln(env.Stdout)
	table := newTable(env.Stdout, env.text("cli.outlook.could_start"), env.text("cli.col.free"), env.text("cli.outlook.most"),
		env.text("cli.outlook.whole"), env.text("cli.outlook.half"), env.text("cli.outlook.single"))
	for _, s := range list {
		jobs := func(n int) string {
			if s.More && n >= outlook.SubjobsMax {
				return strconv.Itoa(n) + "+"
			}
			return strconv.Itoa(n)
		}
		half := "-"
		if s.Node/2 > 1 {
			half = fmt.Sprintf("%s × %d", jobs(s.Half), s.Node/2)
		}
		table.row(safe(s.Model), strconv.Itoa(s.Free), strconv.Itoa(s.Most), fmt.Sprintf("%s × %d", jobs(s.Whole), s.Node), half, jobs(s.Single))
	}
	table.print()
}

// layer is what stands in a chart above what is drawn before it.
type layer struct {
	mark, ahead byte // until now, and behind it
	colour      string
	of          []int
}

// loadChart draws a load: a column for each half of an hour, a line for a part of the
// total, and an upright line at now.
func (env *Env) loadChart(found *outlook.Load, p *outlook.PoolLoad) []string {
	layers := []layer{
		{'#', ':', colourBlue, p.Used},
		{'h', 'h', colourYellow, p.Held},
		{'/', '/', colourBlue, p.Foreseen},
		{'.', '.', colourDim, p.Reserved},
		{'x', 'x', colourRed, p.Away},
	}
	most := 0
	for _, n := range p.Total {
		most = max(most, n)
	}
	first, last := found.Times[0], found.Times[len(found.Times)-1]
	column := func(at structs.UnixNano) int {
		return min(int(at.Sub(first)*loadWidth/max(1, last.Sub(first))), loadWidth-1)
	}
	cells := make([][]string, loadHeight)
	for y := range cells {
		cells[y] = strings.Split(strings.Repeat(" ", loadWidth+1), "")
	}
	nowAt := column(found.At)
	for i, at := range found.Times {
		x := column(at)
		if i > found.Now {
			x++
		}
		below, from := 0, 0
		for _, l := range layers {
			below += l.of[i]
			to := (below*loadHeight + most/2) / most
			mark := l.mark
			if i > found.Now {
				mark = l.ahead
			}
			for y := from; y < to; y++ {
				cells[loadHeight-1-y][x] = env.Stdout.paint(l.colour, string(mark))
			}
			for y := to; y < loadHeight; y++ { // of an instant in the same column
				cells[loadHeight-1-y][x] = " "
			}
			from = to
		}
	}
	margin := len(strconv.Itoa(most))
	var lines []string
	for y := range cells {
		label := ""
		switch y {
		case 0:
			label = strconv.Itoa(most)
		case loadHeight - 1:
			label = "0"
		}
		cells[y][nowAt+1] = "|"
		lines = append(lines, strings.TrimRight(fmt.Sprintf("%*s |%s", margin, label, strings.Join(cells[y], "")), " "))
	}
	return append(lines, strings.Repeat(" ", margin+2)+env.loadAxis(found, column))
}

// loadAxis names some hours below a chart, and now.
func (env *Env) loadAxis(found *outlook.Load, column func(structs.UnixNano) int) string {
	line := []rune(strings.Repeat(" ", loadWidth+8))
	put := func(x int, text string) {
		for i, r := range []rune(text) {
			line[x+i] = r
		}
	}
	for _, at := range found.Times {
		if local := at.Time().Local(); local.Hour()%6 == 0 && local.Minute() == 0 {
			x := column(at)
			if at > found.At {
				x++
			}
			put(x, local.Format("15:04"))
		}
	}
	now := "^" + env.text("cli.outlook.now")
	x := column(found.At) + 1
	for i := max(0, x-6); i < x+len([]rune(now))+1; i++ {
		line[i] = ' '
	}
	put(x, now)
	return strings.TrimRight(string(line), " ")
}

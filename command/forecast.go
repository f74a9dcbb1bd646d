package command

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/outlook"
)

func forecastVerbs() []verb {
	return []verb{
		{path: "queue forecast", setup: queueForecast},
		{path: "queue timeline", setup: queueTimeline},
		{path: "queue accuracy", setup: queueAccuracy},
		{path: "queue try", setup: queueTry},
		{path: "job forecast", args: "JOB", setup: jobForecast},
	}
}

// whenText says when something starts, seen from now.
func (env *Env) whenText(w outlook.When, now structs.UnixNano) string {
	switch w.Verdict {
	case outlook.VerdictNow:
		return env.text("cli.when.now")
	case outlook.VerdictNever:
		return env.text("cli.when.never")
	case outlook.VerdictUnknown:
		return env.text("cli.when.unknown")
	}
	from, to := roughly(w.P50.Sub(now)), roughly(w.P90.Sub(now))
	switch w.Beyond {
	case outlook.BeyondP50:
		return env.text("cli.when.after", "span", from)
	case outlook.BeyondP90:
		return env.text("cli.when.from", "span", from)
	}
	if from == to {
		return env.text("cli.when.about", "span", from)
	}
	return env.text("cli.when.range", "from", from, "to", to)
}

// roughly writes a span as people say it.
func roughly(span time.Duration) string {
	switch {
	case span < time.Minute:
		return strconv.Itoa(max(1, int(span.Round(time.Second)/time.Second))) + "s"
	case span < time.Hour:
		return strconv.Itoa(int(span.Round(time.Minute)/time.Minute)) + "m"
	case span < 48*time.Hour:
		hours := span.Round(time.Minute)
		return fmt.Sprintf("%dh%02dm", int(hours/time.Hour), int(hours%time.Hour/time.Minute))
	}
	return strconv.Itoa(int(span.Round(time.Hour)/(24*time.Hour))) + "d"
}

func queueForecast(set *flag.FlagSet) func(*Env, []string) error {
	return reading("", func(env *Env, client *api.Client, _ string) (*api.QueueForecast, error) {
		found, err := client.QueueForecast(env.Context)
		if err != nil {
			return nil, err
		}
		found.Starts = all(found.Starts)
		return found, nil
	}, func(env *Env, found *api.QueueForecast) { env.printStarts(found.Starts, found.At) })(set)
}

func (env *Env) printStarts(starts []outlook.Start, now structs.UnixNano) {
	if len(starts) == 0 {
		fmt.Fprintln(env.Stdout, env.text("cli.queue.empty"))
		return
	}
	table := newTable(env.Stdout, env.text("cli.col.pool"), "#", "ID", env.text("cli.col.name"), env.text("cli.col.priority"),
		env.text("cli.col.nodes"), env.text("cli.col.starts"), env.text("cli.col.why"))
	for i := range starts {
		s := &starts[i]
		name := safe(s.JobName)
		if s.Subjob > 0 {
			name = fmt.Sprintf("%s s%d", name, s.Subjob)
		}
		why := ""
		if s.Wait != nil {
			why = env.waitText(s.Wait)
		}
		table.row(safe(s.Pool), strconv.Itoa(s.Position), short(s.JobID), name, string(s.Priority), strconv.Itoa(s.Nodes), env.whenText(s.When, now), why)
	}
	table.print()
}

func jobForecast(set *flag.FlagSet) func(*Env, []string) error {
	return reading("JOB", func(env *Env, client *api.Client, id string) (*api.JobForecast, error) {
		found, _, err := client.JobForecast(env.Context, id, nil)
		return found, err
	}, func(env *Env, found *api.JobForecast) {
		env.printStarts(found.Starts, found.At)
		table := newTable(env.Stdout, env.text("cli.col.attempt"), env.text("cli.col.said"), "P50", "P90", env.text("cli.col.started"))
		rows := 0
		for _, attempt := range found.History {
			for _, said := range attempt {
				table.row(strconv.FormatUint(said.Attempt, 10), when(said.GivenAt), when(said.P50), when(said.P90), when(said.StartedAt))
				rows++
			}
		}
		if rows > 0 {
			fmt.Fprintln(env.Stdout)
			table.print()
		}
	})(set)
}

func queueAccuracy(set *flag.FlagSet) func(*Env, []string) error {
	return reading("", func(env *Env, client *api.Client, _ string) (*api.Accuracy, error) {
		return client.Accuracy(env.Context)
	}, (*Env).printAccuracy)(set)
}

func (env *Env) printAccuracy(found *api.Accuracy) {
	if found.All.N == 0 {
		fmt.Fprintln(env.Stdout, env.text("cli.accuracy.none"))
		return
	}
	table := newTable(env.Stdout, env.text("cli.col.pool"), env.text("cli.col.count"), env.text("cli.col.hits"), env.text("cli.col.error"),
		env.text("cli.col.error_median"), env.text("cli.col.bias"), "≤P50", "≤P90")
	row := func(name string, c api.Calibration) {
		span := func(seconds float64) string { return roughly(time.Duration(seconds * float64(time.Second))) }
		bias := span(max(c.Bias, -c.Bias))
		if c.Bias < 0 {
			bias = "-" + bias
		}
		table.row(name, strconv.Itoa(c.N), percent(c.HitPct), span(c.MAE), span(c.MedAE), bias, percent(c.Cov50Pct), percent(c.Cov90Pct))
	}
	for _, name := range slices.Sorted(maps.Keys(found.Pools)) {
		row(safe(name), found.Pools[name])
	}
	row(env.text("cli.accuracy.all"), found.All)
	table.print()
}

func percent(n float64) string { return strconv.FormatFloat(n, 'f', 0, 64) + "%" }

// Width of the drawing of a timeline, in characters.
const timelineWidth = 72

func queueTimeline(set *flag.FlagSet) func(*Env, []string) error {
	hours := set.Int("hours", 24, "cli.flag.hours")
	pool := set.String("pool", "", "cli.flag.pool_only")
	return reading("", func(env *Env, client *api.Client, _ string) (*outlook.Timeline, error) {
		return client.Timeline(env.Context, time.Duration(*hours)*time.Hour, *pool)
	}, (*Env).printTimeline)(set)
}

// printTimeline draws a line for each node: a letter for each job where it is
// expected to hold the node, upper case for what runs, lower case for what is
// forecast, and dots for a reserved start.
func (env *Env) printTimeline(found *outlook.Timeline) {
	span := found.To.Sub(found.From)
	if len(found.Rows) == 0 || span <= 0 {
		fmt.Fprintln(env.Stdout, env.text("cli.timeline.empty"))
		return
	}
	letters := map[string]byte{}
	var order []*outlook.Bar
	table := newTable(env.Stdout, env.text("cli.col.name"), axis(span))
	for i := range found.Rows {
		row := &found.Rows[i]
		line := []byte(strings.Repeat(" ", timelineWidth))
		for k := range row.Bars {
			bar := &row.Bars[k]
			letter, known := letters[bar.JobID]
			if !known {
				letter = byte('A' + len(letters)%26)
				letters[bar.JobID] = letter
				order = append(order, bar)
			}
			end := bar.To
			if end == 0 || end > found.To {
				end = found.To
			}
			from := int(float64(max(bar.From.Sub(found.From), 0)) / float64(span) * timelineWidth)
			to := max(from+1, int(float64(end.Sub(found.From))/float64(span)*timelineWidth))
			for x := from; x < min(to, timelineWidth); x++ {
				switch {
				case bar.Kind == outlook.BarRunning:
					line[x] = letter
				case bar.Kind == outlook.BarForecast:
					line[x] = letter + 'a' - 'A'
				case line[x] == ' ':
					line[x] = '.'
				}
			}
		}
		table.row(safe(row.Node), "|"+string(line)+"|")
	}
	table.print()
	if found.More > 0 {
		fmt.Fprintln(env.Stdout, env.text("cli.timeline.more", "count", found.More))
	}
	for _, bar := range order {
		name := safe(bar.JobName)
		if name == "" {
			name = env.text("cli.timeline.hidden")
		}
		fmt.Fprintf(env.Stdout, "%c  %s\n", letters[bar.JobID], name)
	}
	fmt.Fprintln(env.Stdout, env.text("cli.timeline.legend"))
}

// axis marks the hours over a drawing.
func axis(span time.Duration) string {
	line := []byte(strings.Repeat(" ", timelineWidth+2))
	const marks = 6
	for i := range marks {
		text := "+" + roughly(span*time.Duration(i)/marks)
		if i == 0 {
			text = "0"
		}
		copy(line[1+i*timelineWidth/marks:], text)
	}
	return string(line)
}

// queueTry asks what changes would do, without making them.
func queueTry(set *flag.FlagSet) func(*Env, []string) error {
	connection, output, source := declareConnection(set), declareOutput(set), declareSource(set)
	var drains, stops, priorities, submits listFlag
	set.Var(&drains, "drain", "cli.flag.try_drain")
	set.Var(&stops, "stop", "cli.flag.try_stop")
	set.Var(&priorities, "priority", "cli.flag.try_priority")
	set.Var(&submits, "submit", "cli.flag.try_submit")
	add := set.Int("add", 0, "cli.flag.try_add")
	like := set.String("like", "", "cli.flag.try_like")
	return func(env *Env, args []string) error {
		if err := none(args); err != nil {
			return err
		}
		var changes []outlook.Change
		for _, node := range drains {
			changes = append(changes, outlook.Change{Kind: outlook.ChangeDrain, Node: node})
		}
		for _, job := range stops {
			changes = append(changes, outlook.Change{Kind: outlook.ChangeStop, JobID: job})
		}
		for _, pair := range priorities {
			job, tier, ok := strings.Cut(pair, "=")
			if !ok {
				return usagef("cli.try.priority", "value", safe(pair))
			}
			changes = append(changes, outlook.Change{Kind: outlook.ChangePriority, JobID: job, Priority: structs.Priority(tier)})
		}
		for _, path := range submits {
			job, _, err := env.readJob(path, source)
			if err != nil {
				return err
			}
			changes = append(changes, outlook.Change{Kind: outlook.ChangeSubmit, Job: job})
		}
		if *add > 0 || *like != "" {
			if *add <= 0 || *like == "" {
				return usagef("cli.try.add")
			}
			changes = append(changes, outlook.Change{Kind: outlook.ChangeAddNodes, Node: *like, Count: *add})
		}
		if len(changes) == 0 {
			return usagef("cli.try.nothing")
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		found, err := client.WhatIf(env.Context, changes)
		if err != nil {
			return err
		}
		return env.show(output, found, func() { env.printEffect(found) })
	}
}

func (env *Env) printEffect(found *api.Effect) {
	fmt.Fprintln(env.Stdout, env.text("cli.try.sum", "earlier", found.Earlier, "later", found.Later, "same", found.Same))
	if len(found.Shifts) == 0 {
		return
	}
	now := structs.At(time.Now())
	table := newTable(env.Stdout, "ID", env.text("cli.col.name"), env.text("cli.col.before"), env.text("cli.col.after"), env.text("cli.col.shift"))
	said := func(w *outlook.When) string {
		if w == nil {
			return "-"
		}
		return env.whenText(*w, now)
	}
	for i := range found.Shifts {
		s := &found.Shifts[i]
		by := ""
		switch {
		case s.By > 0:
			by = "+" + roughly(s.By.Std())
		case s.By < 0:
			by = "-" + roughly(-s.By.Std())
		}
		table.row(short(s.JobID), safe(s.JobName), said(s.Before), said(s.After), by)
	}
	table.print()
}

// printAnswer tells when a job that is not submitted would start, and what
// would help.
func (env *Env) printAnswer(found *api.JobOutlook) {
	fmt.Fprintln(env.Stdout, env.text("cli.plan.forecast", "when", env.whenText(found.When, found.At), "position", found.Position, "pool", safe(found.Pool)))
	if found.Wait != nil {
		fmt.Fprintf(env.Stdout, "  %s\n", env.waitText(found.Wait))
	}
	if len(found.Specs) > 1 {
		for i := range found.Specs {
			spec := &found.Specs[i]
			fmt.Fprintf(env.Stdout, "  %s: %s\n", safe(firstOf(spec.Label, strconv.Itoa(spec.Spec+1))), env.whenText(spec.When, found.At))
		}
	}
	for i := range found.Victims {
		v := &found.Victims[i]
		fmt.Fprintf(env.Stdout, "  %s\n", env.text("cli.plan.victim", "job", safe(firstOf(v.JobName, env.text("cli.timeline.hidden"))),
			"user", safe(v.User), "lost", roughly(v.Lost.Std())))
	}
	for i := range found.Helps {
		help := &found.Helps[i]
		fmt.Fprintf(env.Stdout, "  %s\n", env.text("cli.plan.help", "change", env.reasonText(&help.Reason), "when", env.whenText(help.When, found.At)))
	}
}

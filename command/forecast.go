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
		return client.JobHelps(env.Context, id)
	}, func(env *Env, found *api.JobForecast) {
		env.printStarts(found.Starts, found.At)
		if len(found.Starts) > 0 && len(found.Holders) > 0 {
			fmt.Fprintf(env.Stdout, "  %s\n", env.waitingText(env.waitText(found.Starts[0].Wait), holding(found.Starts[0].Wait, found.Holders)))
		}
		env.printHelps(found.Helps, found.At)
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

// queueTry asks what changes would do, without making them, in the order in
// which the command line names them.
func queueTry(set *flag.FlagSet) func(*Env, []string) error {
	connection, output, source := declareConnection(set), declareOutput(set), declareSource(set)
	var tried []tryFlag
	likes := listFlag{}
	set.Var(&tryFlag{kind: outlook.ChangeDrain, all: &tried}, "drain", "cli.flag.try_drain")
	set.Var(&tryFlag{kind: outlook.ChangeStop, all: &tried}, "stop", "cli.flag.try_stop")
	set.Var(&tryFlag{kind: outlook.ChangePriority, all: &tried}, "priority", "cli.flag.try_priority")
	set.Var(&tryFlag{kind: outlook.ChangeMove, all: &tried}, "move", "cli.flag.try_move")
	set.Var(&tryFlag{kind: outlook.ChangeSubmit, all: &tried}, "submit", "cli.flag.try_submit")
	set.Var(&tryFlag{kind: outlook.ChangeSubmit, like: true, all: &tried}, "clone", "cli.flag.try_clone")
	set.Var(&tryFlag{kind: outlook.ChangeQuota, all: &tried}, "quota", "cli.flag.try_quota")
	set.Var(&tryFlag{kind: outlook.ChangeAddNodes, all: &tried}, "add", "cli.flag.try_add")
	set.Var(&likes, "like", "cli.flag.try_like")
	return func(env *Env, args []string) error {
		if err := none(args); err != nil {
			return err
		}
		var changes []outlook.Change
		added := 0
		for _, one := range tried {
			change, err := one.change(env, source)
			if err != nil {
				return err
			}
			if change.Kind == outlook.ChangeAddNodes {
				if added == len(likes) {
					return usagef("cli.try.add")
				}
				change.Node = likes[added]
				added++
			}
			changes = append(changes, change)
		}
		if added != len(likes) {
			return usagef("cli.try.add")
		}
		if len(changes) == 0 {
			return usagef("cli.try.nothing")
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		if err := env.completeQuotas(client, changes); err != nil {
			return err
		}
		found, err := client.WhatIf(env.Context, changes)
		if err != nil {
			return err
		}
		return env.show(output, found, func() { env.printEffect(found) })
	}
}

// tryFlag is one change to try; setting it appends it to all of them.
type tryFlag struct {
	kind  outlook.ChangeKind
	like  bool // submits one like a job that is known
	value string
	all   *[]tryFlag
}

// String shows the value.
func (f *tryFlag) String() string { return f.value }

// Get tells the help what values look like.
func (f *tryFlag) Get() any {
	if f.kind == outlook.ChangeAddNodes {
		return 0
	}
	return f.value
}

// Set adds a change.
func (f *tryFlag) Set(value string) error {
	*f.all = append(*f.all, tryFlag{kind: f.kind, like: f.like, value: value})
	return nil
}

// change reads what the flag asks for; the node that added ones are like is
// another flag's.
func (f *tryFlag) change(env *Env, source *sourceFlags) (outlook.Change, error) {
	change := outlook.Change{Kind: f.kind}
	switch f.kind {
	case outlook.ChangeDrain:
		change.Node = f.value
	case outlook.ChangeStop:
		change.JobID = f.value
	case outlook.ChangePriority:
		job, tier, ok := strings.Cut(f.value, "=")
		if !ok {
			return change, usagef("cli.try.priority", "value", safe(f.value))
		}
		change.JobID, change.Priority = job, structs.Priority(tier)
	case outlook.ChangeMove:
		job, place, _ := strings.Cut(f.value, "=")
		change.JobID = job
		before, isBefore := strings.CutPrefix(place, "before:")
		switch {
		case job != "" && isBefore && before != "":
			change.Before = before
		case job != "" && place == "last":
			change.Last = true
		case job == "" || place != "first":
			return change, usagef("cli.try.move", "value", safe(f.value))
		}
	case outlook.ChangeQuota:
		project, quota, err := tryQuota(f.value)
		if err != nil {
			return change, err
		}
		change.Project, change.Quotas = project, []structs.Quota{quota}
	case outlook.ChangeSubmit:
		if f.like {
			job, number, given := strings.Cut(f.value, "=")
			change.JobID, change.Count = job, 1
			if given {
				count, err := strconv.Atoi(number)
				if err != nil || count <= 0 {
					return change, usagef("cli.try.clone", "value", safe(f.value))
				}
				change.Count = count
			}
			return change, nil
		}
		job, _, err := env.readJob(f.value, source)
		if err != nil {
			return change, err
		}
		change.Job = job
	case outlook.ChangeAddNodes:
		count, err := strconv.Atoi(f.value)
		if err != nil || count <= 0 {
			return change, usagef("cli.try.add")
		}
		change.Count = count
	}
	return change, nil
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

// printAnswer reports when a job that is not submitted would start, and what
// would help.
func (env *Env) printAnswer(found *api.JobOutlook) {
	if found.When.Verdict == outlook.VerdictNow && len(found.Victims) > 0 { // the plan said so
	} else if found.When.Verdict == outlook.VerdictNever {
		fmt.Fprintln(env.Stdout, env.text("cli.plan.forecast_never"))
	} else if !found.Wait.Waits() { // the plan said for whom
		fmt.Fprintln(env.Stdout, env.text("cli.plan.forecast", "when", env.whenText(found.When, found.At), "position", found.Position, "pool", safe(found.Pool)))
	}
	if found.Wait != nil && !found.Wait.Waits() {
		fmt.Fprintf(env.Stdout, "  %s\n", env.waitingText(env.waitText(found.Wait), holding(found.Wait, found.Holders)))
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
	env.printHelps(found.Helps, found.At)
}

func (env *Env) printHelps(helps []outlook.Help, now structs.UnixNano) {
	for i := range helps {
		help := &helps[i]
		fmt.Fprintf(env.Stdout, "  %s\n", env.text("cli.plan.help", "change", env.reasonText(&help.Reason), "when", env.whenText(help.When, now)))
	}
}

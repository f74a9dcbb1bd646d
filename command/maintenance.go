package command

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

func maintenanceVerbs() []verb {
	return []verb{
		{path: "maintenance add", setup: maintenanceAdd},
		{path: "maintenance list", setup: maintenanceList},
		{path: "maintenance show", args: "WINDOW", setup: maintenanceShow},
		{path: "maintenance change", args: "WINDOW", setup: maintenanceChange},
		{path: "maintenance end", args: "WINDOW", setup: maintenanceEnd},
	}
}

// windowFlags say what a window of maintenance is like.
type windowFlags struct {
	set        *flag.FlagSet
	nodes      listFlag
	pool       *string
	all        *bool
	start, end *momentFlag
	length     *spanFlag
	reason     *string
	keep       *bool
}

func declareWindow(set *flag.FlagSet) *windowFlags {
	w := &windowFlags{set: set, start: &momentFlag{now: time.Now}, end: &momentFlag{now: time.Now}}
	set.Var(&w.nodes, "nodes", "cli.flag.maintenance_nodes")
	w.pool = set.String("pool", "", "cli.flag.maintenance_pool")
	w.all = set.Bool("all", false, "cli.flag.maintenance_all")
	set.Var(w.start, "start", "cli.flag.maintenance_start")
	set.Var(w.end, "end", "cli.flag.maintenance_end")
	w.length = declareSpan(set, "for", 0, "cli.flag.maintenance_for")
	w.reason = set.String("reason", "", "cli.flag.maintenance_reason")
	w.keep = set.Bool("keep-running", false, "cli.flag.maintenance_keep")
	return w
}

// request is what the flags ask for.
func (w *windowFlags) request() api.MaintenanceRequest {
	request := api.MaintenanceRequest{Pool: *w.pool, All: *w.all, Start: w.start.at, End: w.end.at, For: w.length.value}
	for _, given := range w.nodes {
		for name := range strings.SplitSeq(given, ",") {
			if name = strings.TrimSpace(name); name != "" {
				request.Nodes = append(request.Nodes, name)
			}
		}
	}
	w.set.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "reason":
			request.Reason = w.reason
		case "keep-running":
			request.KeepRunning = w.keep
		}
	})
	return request
}

// momentFlag is a moment as people say it: "22:00", "2026-11-27 22:00", "in 2h",
// "now", in the zone of this machine, or RFC 3339.
type momentFlag struct {
	at   structs.UnixNano
	text string
	now  func() time.Time
}

// String shows what was said.
func (m *momentFlag) String() string { return m.text }

// Set reads a moment.
func (m *momentFlag) Set(text string) error {
	at, ok := momentOf(text, m.now())
	if !ok {
		return usagef("cli.bad_moment", "value", safe(text))
	}
	m.at, m.text = structs.At(at), text
	return nil
}

// momentOf reads a moment, as seen at now. A time of day means the next one.
func momentOf(text string, now time.Time) (time.Time, bool) {
	text = strings.TrimSpace(text)
	if text == "now" {
		return now, true
	}
	if span, err := structs.ParseDuration(strings.TrimSpace(strings.TrimPrefix(text, "in "))); err == nil && span >= 0 {
		return now.Add(span.Std()), true
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, true
	}
	for _, layout := range []string{"2006-01-02 15:04", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02T15:04:05", time.DateOnly} {
		if at, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return at, true
		}
	}
	of, err := time.Parse("15:04", text)
	if err != nil {
		return time.Time{}, false
	}
	at := time.Date(now.Year(), now.Month(), now.Day(), of.Hour(), of.Minute(), 0, 0, now.Location())
	if !at.After(now) {
		at = time.Date(now.Year(), now.Month(), now.Day()+1, of.Hour(), of.Minute(), 0, 0, now.Location())
	}
	return at, true
}

func maintenanceAdd(set *flag.FlagSet) func(*Env, []string) error {
	connection, output, window := declareConnection(set), declareOutput(set), declareWindow(set)
	return func(env *Env, args []string) error {
		if err := none(args); err != nil {
			return err
		}
		if window.start.text == "" {
			return usagef("cli.maintenance.no_start")
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		made, err := client.AddMaintenance(env.Context, window.request())
		if err != nil {
			return err
		}
		return env.show(output, made.Window, func() {
			fmt.Fprintln(env.Stdout, env.windowText("cli.maintenance.added", &made.Window))
			env.printInto(&made.Window)
		})
	}
}

func maintenanceChange(set *flag.FlagSet) func(*Env, []string) error {
	connection, output, window := declareConnection(set), declareOutput(set), declareWindow(set)
	return func(env *Env, args []string) error {
		id, err := one(args, "WINDOW")
		if err != nil {
			return err
		}
		if window.set.NFlag() == 0 {
			return usagef("cli.maintenance.no_change")
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		made, err := client.ChangeMaintenance(env.Context, id, window.request())
		if err != nil {
			return err
		}
		return env.show(output, made.Window, func() {
			fmt.Fprintln(env.Stdout, env.windowText("cli.maintenance.changed", &made.Window))
			env.printInto(&made.Window)
		})
	}
}

func maintenanceEnd(set *flag.FlagSet) func(*Env, []string) error {
	return deleting("WINDOW", "cli.maintenance.removed", func(env *Env, client *api.Client, id string) error {
		_, err := client.EndMaintenance(env.Context, id)
		return err
	})(set)
}

func maintenanceList(set *flag.FlagSet) func(*Env, []string) error {
	return reading("", func(env *Env, client *api.Client, _ string) ([]api.MaintenanceDetail, error) {
		list, _, err := client.Maintenance(env.Context, nil)
		if err != nil {
			return nil, err
		}
		return all(list.Windows), nil
	}, (*Env).printWindows)(set)
}

func maintenanceShow(set *flag.FlagSet) func(*Env, []string) error {
	return reading("WINDOW", func(env *Env, client *api.Client, id string) (*api.MaintenanceDetail, error) {
		list, _, err := client.Maintenance(env.Context, nil)
		if err != nil {
			return nil, err
		}
		return windowNamed(list.Windows, id)
	}, (*Env).printWindow)(set)
}

// windowNamed finds a window by its id, or by the beginning of it.
func windowNamed(windows []api.MaintenanceDetail, id string) (*api.MaintenanceDetail, error) {
	var found []*api.MaintenanceDetail
	for i := range windows {
		if windows[i].ID == id {
			return &windows[i], nil
		}
		if strings.HasPrefix(windows[i].ID, id) {
			found = append(found, &windows[i])
		}
	}
	switch len(found) {
	case 0:
		return nil, structs.NewError(structs.CodeNotFound, "state.maintenance_unknown", "id", id)
	case 1:
		return found[0], nil
	}
	return nil, structs.NewError(structs.CodeConflict, "agent.maintenance_ambiguous", "id", id, "count", len(found))
}

func (env *Env) printWindows(windows []api.MaintenanceDetail) {
	if len(windows) == 0 {
		fmt.Fprintln(env.Stdout, env.text("cli.maintenance.list_empty"))
		return
	}
	table := newTable(env.Stdout, "ID", env.text("cli.col.state"), env.text("cli.col.start"), env.text("cli.col.end"),
		env.text("cli.col.nodes"), env.text("cli.col.jobs_into"), env.text("cli.col.reason"))
	for i := range windows {
		w := &windows[i]
		table.row(w.ID, env.windowState(w), minute(w.Start), minute(w.End), fmt.Sprintf("%d (%s)", len(w.Names), safe(env.coveredText(w))),
			strconv.Itoa(len(w.Running)+w.Others), safe(w.Reason))
	}
	table.print()
}

// coveredText says which nodes a window is about, in few words.
func (env *Env) coveredText(w *api.MaintenanceDetail) string {
	const shown = 3
	switch {
	case w.All:
		return env.text("cli.maintenance.all")
	case w.Pool != "":
		return env.text("cli.maintenance.pool", "pool", w.Pool)
	case len(w.Nodes) > shown:
		return strings.Join(w.Nodes[:shown], " ") + " …"
	}
	return strings.Join(w.Nodes, " ")
}

func (env *Env) windowState(w *api.MaintenanceDetail) string {
	if w.Begun {
		return env.Stdout.paint(colourYellow, env.text("cli.maintenance.begun"))
	}
	return env.text("cli.maintenance.ahead")
}

// windowText is a sentence about a window.
func (env *Env) windowText(id string, w *api.MaintenanceDetail) string {
	return env.text(id, "id", w.ID, "nodes", strconv.Itoa(len(w.Names)), "start", minute(w.Start), "end", minute(w.End),
		"span", structs.FormatDuration(structs.Duration(w.End.Sub(w.Start))))
}

func (env *Env) printWindow(w *api.MaintenanceDetail) {
	fields := newTable(env.Stdout, "", "")
	fields.row("ID", w.ID)
	fields.row(env.text("cli.col.state"), env.windowState(w))
	fields.row(env.text("cli.col.start"), minute(w.Start))
	fields.row(env.text("cli.col.end"), minute(w.End))
	fields.row(env.text("cli.col.nodes"), fmt.Sprintf("%d (%s)", len(w.Names), safe(strings.Join(w.Names, " "))))
	if w.Reason != "" {
		fields.row(env.text("cli.col.reason"), safe(w.Reason))
	}
	fields.row(env.text("cli.col.at_start"), env.atStartText(w))
	fields.row(env.text("cli.col.made_by"), safe(w.By)+"  "+minute(w.At))
	fields.print()
	env.printInto(w)
}

func (env *Env) atStartText(w *api.MaintenanceDetail) string {
	if w.KeepRunning {
		return env.text("cli.maintenance.keeps")
	}
	return env.text("cli.maintenance.stops")
}

// printInto lists what runs into a window.
func (env *Env) printInto(w *api.MaintenanceDetail) {
	if len(w.Running)+w.Others == 0 {
		if !w.Begun {
			fmt.Fprintln(env.Stdout, env.text("cli.maintenance.none_into"))
		}
		return
	}
	heading := "cli.maintenance.into_stops"
	switch {
	case w.Begun:
		heading = "cli.maintenance.into_begun"
	case w.KeepRunning:
		heading = "cli.maintenance.into_keeps"
	}
	fmt.Fprintf(env.Stdout, "\n%s\n", env.text(heading, "jobs", strconv.Itoa(len(w.Running)+w.Others)))
	if len(w.Running) > 0 {
		table := newTable(env.Stdout, env.text("cli.col.job"), env.text("cli.col.user"), env.text("cli.col.nodes"),
			env.text("cli.col.expected_end"), env.text("cli.col.limit_end"), env.text("cli.col.checkpoints"))
		for i := range w.Running {
			job := &w.Running[i]
			name := safe(job.JobName)
			if job.Subjob > 0 {
				name += "/" + strconv.Itoa(job.Subjob)
			}
			table.row(name, safe(job.User), safe(strings.Join(job.Nodes, " ")), minute(job.Expected), minute(job.Limit), env.yesNo(job.Checkpoint))
		}
		table.print()
	}
	if w.Others > 0 {
		fmt.Fprintln(env.Stdout, env.text("cli.maintenance.others", "jobs", strconv.Itoa(w.Others)))
	}
}

// minute shows a time to the minute, in the zone of this machine.
func minute(at structs.UnixNano) string {
	if at == 0 {
		return "-"
	}
	return at.Time().Local().Format("2006-01-02 15:04")
}

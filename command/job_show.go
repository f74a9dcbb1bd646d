package command

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

func jobList(set *flag.FlagSet) func(*Env, []string) error {
	connection, output := declareConnection(set), declareOutput(set)
	filter := api.JobFilter{}
	set.StringVar(&filter.Name, "name", "", "cli.flag.name")
	connection.means(set, "cli.flag.project")
	set.StringVar(&filter.User, "user", "", "cli.flag.user")
	set.StringVar(&filter.Code, "code", "", "cli.flag.code")
	set.StringVar(&filter.Spec, "spec", "", "cli.flag.spec")
	set.StringVar(&filter.Output, "output", "", "cli.flag.output_location")
	set.StringVar(&filter.Cause, "cause", "", "cli.flag.cause")
	set.StringVar(&filter.Tag, "tag", "", "cli.flag.tag")
	set.StringVar(&filter.Text, "text", "", "cli.flag.text")
	state := set.String("state", "", "cli.flag.state")
	stale := set.Bool("stale", false, "cli.flag.stale")
	return func(env *Env, args []string) error {
		if err := none(args); err != nil {
			return err
		}
		filter.State, filter.Project = structs.JobState(*state), *connection.project
		if filter.State != "" && !slices.Contains(structs.JobStates(), filter.State) {
			return usagef("cli.bad_state", "value", safe(*state), "known", joined(structs.JobStates()))
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		jobs, err := allJobs(env.Context, client, filter, *stale)
		if err != nil {
			return err
		}
		return env.show(output, jobs, func() { env.printJobs(jobs) })
	}
}

func (env *Env) printJobs(jobs []api.JobSummary) {
	if len(jobs) == 0 {
		fmt.Fprintln(env.Stdout, env.text("cli.job.list_empty"))
		return
	}
	heads := []string{
		"ID", env.text("cli.col.name"), env.text("cli.col.project"), env.text("cli.col.user"),
		env.text("cli.col.nodes"), env.text("cli.col.priority"), env.text("cli.col.submitted"), env.text("cli.col.state"),
	}
	tagged := slices.ContainsFunc(jobs, func(job api.JobSummary) bool { return len(job.Tags) > 0 })
	if tagged {
		heads = append(heads, env.text("cli.col.tags"))
	}
	table := newTable(env.Stdout, append(heads, env.text("cli.col.why"))...)
	for _, job := range jobs {
		nodes := strconv.Itoa(job.Nodes)
		if job.Type == structs.JobTypeBatch {
			nodes = fmt.Sprintf("%d×%d", job.Subjobs, job.Nodes)
		}
		cells := []string{
			short(job.ID), safe(job.Name), safe(job.Project), safe(job.User), nodes,
			priorityText(job.Priority, job.VIP), when(job.SubmittedAt), env.stateText(env.Stdout, job.State),
		}
		if tagged {
			cells = append(cells, safe(strings.Join(job.Tags, " ")))
		}
		table.row(append(cells, env.statusText(job.JobStatus))...)
	}
	table.print()
}

// priorityText is a tier, with the badge of a job that chose its machines.
func priorityText(priority structs.Priority, vip bool) string {
	if vip {
		return string(priority) + " VIP"
	}
	return string(priority)
}

// machinesText lists the machines that a job chose, and what becomes of the jobs
// that run there.
func machinesText(vip *structs.VIP) string {
	texts := make([]string, len(vip.Machines))
	for i, machine := range vip.Machines {
		texts[i] = fmt.Sprintf("%s (%s)", safe(machine.Node), machine.Busy)
	}
	return strings.Join(texts, ", ")
}

// statusText is the one reason that a person looks for in a list.
func (env *Env) statusText(status api.JobStatus) string {
	if status.State == structs.JobQueued && status.Wait != nil {
		if status.Wait.ID == "scheduler.restart_delay" && status.Reason != nil { // why the last attempt failed
			return env.text("cli.wait.after", "wait", env.waitText(status.Wait), "cause", env.reasonText(status.Reason))
		}
		return env.waitText(status.Wait)
	}
	return env.reasonText(status.Reason)
}

func (env *Env) waitText(wait *structs.WaitReason) string {
	if wait == nil {
		return env.text("cli.wait.unknown")
	}
	return env.reasonText(&wait.Reason)
}

// holding are the jobs that hold what something waits for: none where it waits for the
// jobs themselves, which the reason names.
func holding(wait *structs.WaitReason, holders []api.JobRef) []api.JobRef {
	if wait.Waits() {
		return nil
	}
	return holders
}

// waitingText says why something waits, and who holds what it waits for.
func (env *Env) waitingText(why string, holders []api.JobRef) string {
	if len(holders) == 0 {
		return why
	}
	names := make([]string, 0, len(holders))
	for i := range holders {
		holder := &holders[i]
		name := safe(firstOf(holder.Name, env.text("cli.timeline.hidden")))
		if holder.Idle != "" {
			name = env.text("cli.wait.idle", "job", name, "idle", "idle_"+holder.Idle)
		}
		names = append(names, name)
	}
	return env.text("cli.wait.held", "wait", why, "jobs", strings.Join(names, ", "))
}

func jobStatus(set *flag.FlagSet) func(*Env, []string) error {
	connection, output := declareConnection(set), declareOutput(set)
	stale := set.Bool("stale", false, "cli.flag.stale")
	return func(env *Env, args []string) error {
		id, err := atMostOne(args)
		if err != nil {
			return err
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		if id == "" {
			jobs, err := allJobs(env.Context, client, api.JobFilter{}, *stale)
			if err != nil {
				return err
			}
			return env.show(output, jobs, func() { env.printJobs(jobs) })
		}
		query := &api.Query{Stale: *stale}
		detail, _, err := client.Job(env.Context, id, query)
		if err != nil {
			return err
		}
		allocations, _, err := client.Allocations(env.Context, detail.Job.ID, api.AllocationFilter{}, query)
		if err != nil {
			return err
		}
		value := struct {
			*api.JobDetail
			Allocations []structs.Allocation `json:"allocations"`
		}{detail, allocations.Allocations}
		return env.show(output, value, func() { env.printJob(detail, allocations.Allocations, env.faultsRow(client, detail)) })
	}
}

func (env *Env) printJob(detail *api.JobDetail, allocations []structs.Allocation, lost string) {
	job := detail.Job
	fields := newTable(env.Stdout, "", "")
	fields.row("ID", job.ID)
	if job.Number != 0 {
		fields.row(env.text("cli.col.number"), strconv.FormatUint(job.Number, 10))
	}
	fields.row(env.text("cli.col.name"), safe(job.Name))
	fields.row(env.text("cli.col.project"), safe(job.Project))
	fields.row(env.text("cli.col.user"), safe(job.User))
	fields.row(env.text("cli.col.mode"), string(job.Distributed.Mode))
	fields.row(env.text("cli.col.nodes"), strconv.Itoa(job.Nodes))
	if code := env.workdirText(job.Workdir); code != "" {
		fields.row(env.text("cli.col.code"), code)
	}
	fields.row(env.text("cli.col.priority"), priorityText(job.Priority, job.VIP != nil))
	if job.VIP != nil {
		fields.row(env.text("cli.col.machines"), machinesText(job.VIP))
	}
	fields.row(env.text("cli.col.state"), env.stateText(env.Stdout, detail.State))
	if why := env.statusText(detail.JobStatus); why != "" {
		fields.row(env.text("cli.col.why"), env.waitingText(why, holding(detail.Wait, detail.Holders)))
	}
	env.printStart(fields, detail)
	for i := range detail.Asked {
		fields.row(env.text("cli.col.asked"), env.askedText(&detail.Asked[i]))
	}
	for i := range detail.Answers {
		fields.row(env.text("cli.col.asked"), env.answeredText(&detail.Answers[i]))
	}
	if len(job.Tags) > 0 {
		fields.row(env.text("cli.col.tags"), safe(strings.Join(job.Tags, " ")))
	}
	if job.Note != "" {
		fields.row(env.text("cli.col.note"), safe(strings.ReplaceAll(job.Note, "\n", " ")))
	}
	if control := env.controlText(detail); control != "" {
		fields.row(env.text("cli.col.control"), control)
	}
	fields.row(env.text("cli.col.attempt"), strconv.FormatUint(detail.Attempt, 10))
	if lost != "" {
		fields.row(env.text("cli.col.faults"), lost)
	}
	if len(detail.Subjobs) == 1 {
		if saved := detail.Subjobs[0].Newest(); saved != nil {
			fields.row(env.text("cli.col.checkpoint"), env.checkpointText(saved))
		}
	}
	for i := range detail.Outputs {
		for _, line := range env.outputLines(job, &detail.Outputs[i]) {
			fields.row(env.text("cli.col.output"), line)
		}
	}
	fields.row(env.text("cli.col.submitted"), when(job.SubmittedAt))
	fields.row(env.text("cli.col.started"), when(detail.StartedAt))
	fields.row(env.text("cli.col.finished"), when(detail.FinishedAt))
	if detail.StartedAt != 0 && detail.FinishedAt != 0 {
		fields.row(env.text("cli.col.took"), span(detail.FinishedAt.Sub(detail.StartedAt)))
	}
	if detail.State.Terminal() {
		exit := strconv.Itoa(detail.ExitCode)
		if detail.State != structs.JobSucceeded && detail.ExitCode == 0 && !slices.ContainsFunc(allocations, func(a structs.Allocation) bool { return !neverRan(&a) }) {
			exit = "-"
		}
		fields.row(env.text("cli.col.exit"), exit)
	}
	fields.print()
	if job.Batched() {
		fmt.Fprintf(env.Stdout, "\n%s\n", env.countsText(env.Stdout, detail))
	}
	if len(allocations) == 0 {
		return
	}
	fmt.Fprintln(env.Stdout)
	table := newTable(env.Stdout, env.text("cli.col.attempt"), env.text("cli.col.rank"), env.text("cli.col.node"),
		env.text("cli.col.alloc"), env.text("cli.col.state"), env.text("cli.col.exit"), env.text("cli.col.why"))
	for _, alloc := range allocations {
		exit := "-"
		if (alloc.Status == structs.AllocComplete || alloc.Status == structs.AllocFailed) && !neverRan(&alloc) {
			exit = strconv.Itoa(alloc.ExitCode)
		}
		rank := strconv.Itoa(alloc.Rank)
		if job.Batched() {
			rank = fmt.Sprintf("s%d/%d", alloc.Subjob, alloc.Rank)
		}
		table.row(strconv.FormatUint(alloc.Attempt, 10), rank, safe(alloc.NodeName), short(alloc.ID),
			env.allocText(&alloc), exit, env.reasonText(alloc.Cause))
	}
	table.print()
}

// neverRan reports whether a rank has no end of its own: its command was not started.
func neverRan(alloc *structs.Allocation) bool {
	return alloc.StartedAt == 0 && alloc.ExitCode == 0 && alloc.Signal == 0
}

// countsText reports how many subjobs are in which state.
func (env *Env) countsText(on *Screen, detail *api.JobDetail) string {
	var parts []string
	for _, state := range structs.JobStates() {
		if n := detail.Counts[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", env.stateText(on, state), n))
		}
	}
	return strings.Join(parts, "  ")
}

// openJob connects for a verb about one job and reads it. The caller closes the
// client.
func (env *Env) openJob(connection connectionFlags, args []string) (*api.Client, *api.JobDetail, error) {
	id, err := one(args, "JOB")
	if err != nil {
		return nil, nil, err
	}
	client, err := env.connect(connection)
	if err != nil {
		return nil, nil, err
	}
	detail, _, err := client.Job(env.Context, id, nil)
	if err != nil {
		client.Close()
		return nil, nil, err
	}
	return client, detail, nil
}

func jobInspect(set *flag.FlagSet) func(*Env, []string) error {
	connection := declareConnection(set)
	output := declareOutput(set)
	return func(env *Env, args []string) error {
		client, detail, err := env.openJob(connection, args)
		if err != nil {
			return err
		}
		defer client.Close()
		attempts, _, err := client.Attempts(env.Context, detail.Job.ID, nil)
		if err != nil {
			return err
		}
		allocations, _, err := client.Allocations(env.Context, detail.Job.ID, api.AllocationFilter{}, nil)
		if err != nil {
			return err
		}
		value := struct {
			*api.JobDetail
			Attempts    []structs.Attempt    `json:"attempts"`
			Allocations []structs.Allocation `json:"allocations"`
		}{detail, attempts.Attempts, allocations.Allocations}
		*output.json = true
		return env.show(output, value, func() {})
	}
}

func (env *Env) printEvent(event *structs.Event) {
	text := env.reasonText(&structs.Reason{ID: event.ID, Params: event.Params})
	if event.Cause != nil {
		text += ": " + env.reasonText(event.Cause)
	}
	switch event.Severity {
	case "error":
		text = env.Stdout.paint(colourRed, text)
	case "warn":
		text = env.Stdout.paint(colourYellow, text)
	}
	by := ""
	if event.By != "" && !isAgentID(event.By) {
		by = env.Stdout.paint(colourDim, " ("+safe(event.By)+")")
	}
	fmt.Fprintf(env.Stdout, "%s  %s%s\n", event.Time.Time().Local().Format("2006-01-02 15:04:05.000"), text, by)
}

func queueShow(set *flag.FlagSet) func(*Env, []string) error {
	connection, output := declareConnection(set), declareOutput(set)
	stale := set.Bool("stale", false, "cli.flag.stale")
	return func(env *Env, args []string) error {
		if err := none(args); err != nil {
			return err
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		entries, hidden := []api.QueueEntry{}, 0
		query := &api.Query{Stale: *stale, Limit: api.PageSizeMax}
		for {
			page, _, err := client.Queue(env.Context, query)
			if err != nil {
				return err
			}
			entries, hidden = append(entries, page.Entries...), page.Hidden
			if page.Next == "" {
				break
			}
			query.After = page.Next
		}
		return env.show(output, entries, func() { env.printQueue(entries, hidden) })
	}
}

func (env *Env) printQueue(entries []api.QueueEntry, hidden int) {
	if hidden > 0 {
		defer func() { fmt.Fprintln(env.Stdout, env.text("cli.queue.hidden", "count", hidden)) }()
	}
	if len(entries) == 0 {
		if hidden == 0 {
			fmt.Fprintln(env.Stdout, env.text("cli.queue.empty"))
		}
		return
	}
	table := newTable(env.Stdout, "#", "ID", env.text("cli.col.name"), env.text("cli.col.user"), env.text("cli.col.priority"),
		env.text("cli.col.nodes"), env.text("cli.col.queued"), env.text("cli.col.why"))
	for _, entry := range entries {
		name := safe(entry.JobName)
		if entry.Subjob > 0 {
			name = fmt.Sprintf("%s s%d", name, entry.Subjob)
		}
		table.row(strconv.Itoa(entry.Position), short(entry.JobID), name, safe(entry.User), priorityText(entry.Priority, entry.VIP),
			strconv.Itoa(entry.Nodes), when(entry.QueuedAt), env.waitingText(env.waitText(entry.Wait), holding(entry.Wait, entry.Holders)))
	}
	table.print()
}

// shellLine writes words so that a shell would read them back.
func shellLine(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		if word != "" && strings.IndexFunc(word, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_=./:,@%+^", r))
		}) < 0 {
			quoted[i] = word
			continue
		}
		quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return strings.Join(quoted, " ")
}

// joined lists words of a kind.
func joined[T ~string](words []T) string {
	list := make([]string, len(words))
	for i, word := range words {
		list[i] = string(word)
	}
	return strings.Join(list, ", ")
}

// isAgentID reports whether by is an agent, which the event's own words name,
// and not a person.
func isAgentID(by string) bool {
	return len(by) == 32 && strings.Trim(by, "0123456789abcdef") == ""
}

// checkpointText reports the checkpoint that a job's next attempt starts from.
func (env *Env) checkpointText(saved *structs.SavedCheckpoint) string {
	return env.text("cli.job.newest_checkpoint", "path", safe(saved.Path), "step", saved.Step,
		"attempt", saved.Attempt, "at", when(saved.SavedAt))
}

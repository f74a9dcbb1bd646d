package command

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

func lineageVerbs() []verb {
	return []verb{
		{path: "data add", args: "NAME from JOB [PATH]", setup: func(set *flag.FlagSet) func(*Env, []string) error { return dataAdd(set, "") }},
		{path: "data lineage", args: "NAME[@VERSION]", setup: dataLineage},
		{path: "model add", args: "NAME from JOB [PATH]", setup: func(set *flag.FlagSet) func(*Env, []string) error {
			return dataAdd(set, structs.StorageModel)
		}},
	}
}

// dataAdd has what a job wrote become a version, and waits for it.
func dataAdd(set *flag.FlagSet, kind string) func(*Env, []string) error {
	connection, output := declareConnection(set), declareOutput(set)
	if kind == "" {
		set.StringVar(&kind, "kind", structs.StorageDataset, "cli.flag.data_kind")
	}
	var request api.DataTakeRequest
	set.Int64Var(&request.Checkpoint, "checkpoint", 0, "cli.flag.take_checkpoint")
	subjob := set.Int("subjob", 0, "cli.flag.take_subjob")
	set.StringVar(&request.Tag, "tag", "", "cli.flag.data_tag")
	set.StringVar(&request.Storage, "storage", "", "cli.flag.data_storage")
	set.StringVar(&request.Access, "access", "", "cli.flag.data_access")
	set.StringVar(&request.Description, "description", "", "cli.flag.data_description")
	return func(env *Env, args []string) error {
		if len(args) > 1 && args[1] == "from" {
			args = append(args[:1:1], args[2:]...)
		}
		if len(args) < 2 || len(args) > 3 {
			return argumentsProblem(args, []string{"NAME", "JOB", "PATH"})
		}
		if request.Job = args[1]; len(args) == 3 {
			request.Path = strings.TrimSuffix(strings.TrimPrefix(args[2], structs.WorkspaceDir+"/outputs/"), "/")
		}
		set.Visit(func(given *flag.Flag) {
			if given.Name == "subjob" {
				request.Subjob = subjob
			}
		})
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		of := api.DataName{Kind: kind, Name: args[0]}
		changed, err := client.TakeData(env.Context, of, request)
		if err != nil {
			return err
		}
		made, err := awaitTaken(env.Context, client, of, changed.Version)
		if err != nil {
			return err
		}
		return env.show(output, made, func() {
			fmt.Fprintln(env.Stdout, env.text("cli.data.taken", "kind", kind, "name", safe(of.Name), "version", made.Number, "files", made.Files, "size", structs.FormatSize(made.Bytes)))
		})
	}
}

// takenEvery is how often the servers are asked whether a version is made.
const takenEvery = 300 * time.Millisecond

// awaitTaken waits until a version is made, or given up: then the job's history tells why.
func awaitTaken(ctx context.Context, client *api.Client, of api.DataName, number int) (*structs.DataVersion, error) {
	tick := time.NewTicker(takenEvery)
	defer tick.Stop()
	job := ""
	for {
		detail, err := client.DataObject(ctx, of)
		if err != nil {
			return nil, err
		}
		version := detail.Object.Version(number)
		switch {
		case version == nil:
			return nil, whyNot(ctx, client, job, of, number)
		case version.Usable():
			return version, nil
		}
		job = version.JobID
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// whyNot is the cause that the job's history names.
func whyNot(ctx context.Context, client *api.Client, job string, of api.DataName, number int) error {
	if job != "" {
		list, _, err := client.JobEvents(ctx, job, nil)
		if err != nil {
			return err
		}
		for i := len(list.Events) - 1; i >= 0; i-- {
			e := &list.Events[i]
			if e.ID == "event.job.output_refused" && e.Params["name"] == of.Name && e.Params["version"] == fmt.Sprint(number) && e.Cause != nil {
				return &structs.Error{Code: structs.CodeConflict, ID: e.Cause.ID, Params: e.Cause.Params}
			}
		}
	}
	return structs.NewError(structs.CodeConflict, "cli.data.not_taken", "kind", of.Kind, "name", of.Name, "version", number)
}

func dataLineage(set *flag.FlagSet) func(*Env, []string) error {
	return dataVerb(set, "NAME[@VERSION]", func(env *Env, client *api.Client, flags *dataFlags, args []string) error {
		of := flags.named(args[0])
		number := of.version
		if of.tag != "" {
			detail, err := client.DataObject(env.Context, of.DataName)
			if err != nil {
				return err
			}
			version, err := chosenVersion(detail, of)
			if err != nil {
				return err
			}
			number = version.Number
		}
		lineage, err := client.DataLineage(env.Context, of.DataName, number)
		if err != nil {
			return err
		}
		return env.show(flags.output, lineage, func() { env.printLineage(lineage) })
	})
}

// printLineage draws two trees: what the version was made of, and what was made of it;
// one that is empty is left out.
func (env *Env) printLineage(lineage *api.DataLineage) {
	draw := func(up bool, title string) {
		if !slices.ContainsFunc(lineage.Edges, func(e api.LineageEdge) bool { return up && e.To == lineage.Root || !up && e.From == lineage.Root }) {
			return
		}
		fmt.Fprintln(env.Stdout, env.text(title))
		seen := make(map[int]bool)
		var walk func(at int, indent string)
		walk = func(at int, indent string) {
			var next []int
			for _, edge := range lineage.Edges {
				if from, to := edge.From, edge.To; up && to == at {
					next = append(next, from)
				} else if !up && from == at {
					next = append(next, to)
				}
			}
			for i, to := range next {
				branch, below := "├─ ", "│  "
				if i == len(next)-1 {
					branch, below = "└─ ", "   "
				}
				fmt.Fprintln(env.Stdout, indent+branch+env.lineageText(&lineage.Nodes[to]))
				if !seen[to] {
					seen[to] = true
					walk(to, indent+below)
				}
			}
		}
		walk(lineage.Root, "")
	}
	fmt.Fprintln(env.Stdout, env.lineageText(&lineage.Nodes[lineage.Root]))
	draw(true, "cli.lineage.made_of")
	draw(false, "cli.lineage.became")
	if lineage.Cut {
		fmt.Fprintln(env.Stdout, env.text("cli.lineage.cut"))
	}
}

// lineageText is a version, a job or code in one line.
func (env *Env) lineageText(node *api.LineageNode) string {
	var text string
	switch {
	case node.Hidden:
		return env.text("cli.lineage.hidden." + node.What)
	case node.What == api.LineageCode:
		text = env.text("cli.lineage.code", "digest", shortDigest(safe(node.Digest)))
		if node.Commit != "" {
			text += ", git " + safe(node.Commit[:min(len(node.Commit), 12)])
		}
		if node.Dirty {
			text += "+"
		}
	case node.What == api.LineageJob:
		text = env.text("cli.lineage.job", "name", safe(node.Name), "id", safe(node.JobID[:min(len(node.JobID), structs.ShortIDLength)]), "attempt", node.Attempt, "by", safe(node.By))
		if node.Apart {
			text += ", " + env.text("cli.lineage.subjob", "subjob", node.Subjob)
		}
		if node.Command != "" {
			text += ": " + safe(firstLine(node.Command))
		}
	default:
		text = env.text("cli.lineage.data", "kind", node.Kind, "name", safe(node.Name), "version", node.Version, "project", safe(node.Project))
	}
	if node.Gone {
		text += " " + env.text("cli.lineage.gone")
	}
	return text
}

package command

import (
	"errors"
	"fmt"
	"slices"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// codeDiff is in what the code of two jobs differs.
type codeDiff struct {
	Before  *structs.Workdir `json:"before"` // nil: no code went with it
	After   *structs.Workdir `json:"after"`
	Changes []tree.Change    `json:"changes"`
	problem error            // why the two could not be compared
}

// diffCode compares the code of two jobs, name by name. nil: it is the same, or none.
func (env *Env) diffCode(client *api.Client, found *api.JobDiff) (*codeDiff, error) {
	if !slices.ContainsFunc(found.Differences, func(d structs.Difference) bool { return d.Path == "workdir" }) {
		return nil, nil // no difference is an answer
	}
	diff := &codeDiff{Changes: []tree.Change{}}
	var trees [2]tree.Manifest
	for i, id := range []string{found.Before.ID, found.After.ID} {
		detail, _, err := client.Job(env.Context, id, nil)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			diff.Before = detail.Job.Workdir
		} else {
			diff.After = detail.Job.Workdir
		}
		if detail.Job.Tree() == "" {
			continue // of an empty tree all is added, or removed
		}
		trees[i], diff.problem = env.treeOf(client.In(detail.Job.Project), tree.Digest(detail.Job.Tree()))
		if diff.problem != nil {
			break // what changed in the job file is shown all the same
		}
	}
	if diff.problem == nil {
		diff.Changes = append(diff.Changes, tree.Compare(trees[0], trees[1])...)
	}
	return diff, nil
}

// treeOf reads what code consists of.
func (env *Env) treeOf(client *api.Client, digest tree.Digest) (tree.Manifest, error) {
	data, err := client.CodeManifest(env.Context, digest)
	if err != nil {
		return tree.Manifest{}, err
	}
	if tree.DigestOf(data) != digest {
		return tree.Manifest{}, structs.NewError(structs.CodeUnavailable, "cli.code.broken", "tree", digest.Short())
	}
	return tree.Decode(data)
}

// printCodeDiff lists the names in which two jobs' code differs.
func (env *Env) printCodeDiff(diff *codeDiff) {
	if diff == nil {
		return
	}
	fmt.Fprintf(env.Stdout, "\n%s\n", env.Stdout.paint(colourBold, env.text("cli.code.diff")))
	fmt.Fprintf(env.Stdout, "  - %s\n  + %s\n", firstOf(env.workdirText(diff.Before), "-"), firstOf(env.workdirText(diff.After), "-"))
	if refused := new(structs.Error); errors.As(diff.problem, &refused) {
		fmt.Fprintf(env.Stdout, "  %s\n", env.text("cli.code.diff_problem", "problem", env.errorText(*refused)))
		return
	}
	table := newTable(env.Stdout, "", "")
	for _, change := range diff.Changes {
		table.row("  "+env.text("cli.code.change."+change.What), safe(change.Path))
	}
	table.print()
}

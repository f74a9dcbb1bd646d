package command

import (
	"flag"
	"fmt"
	"path/filepath"
	"strings"

	"nomadlike/nomadlike/parcel"
	"nomadlike/nomadlike/structs"
)

// packageFlags say what is done with a package.
type packageFlags struct {
	to                            *string
	force                         *bool
	noCode, noOutputs, noLogs     *bool
	list, verify, extract, submit *bool
	name                          *string
	dryRun, anyRatio              *bool
	sets                          listFlag
	filter                        parcelFilter
}

// parcelFilter says whose outputs are packed.
type parcelFilter struct{ rank *int }

// jobPackage packs a run of a job into one file, or does something with such a file.
func jobPackage(set *flag.FlagSet) func(*Env, []string) error {
	connection, output := declareConnection(set), declareOutput(set)
	connection.means(set, "cli.flag.package_project")
	flags := &packageFlags{
		to: set.String("o", "", "cli.flag.package_to"), force: set.Bool("force", false, "cli.flag.force"),
		noCode: set.Bool("no-code", false, "cli.flag.package_no_code"), noOutputs: set.Bool("no-outputs", false, "cli.flag.package_no_outputs"),
		noLogs: set.Bool("no-logs", false, "cli.flag.package_no_logs"), filter: parcelFilter{rank: set.Int("rank", 0, "cli.flag.package_rank")},
		list: set.Bool("list", false, "cli.flag.package_list"), verify: set.Bool("verify", false, "cli.flag.package_verify"),
		extract: set.Bool("extract", false, "cli.flag.package_extract"), submit: set.Bool("submit", false, "cli.flag.package_submit"),
		name: set.String("name", "", "cli.flag.package_name"), dryRun: set.Bool("dry-run", false, "cli.flag.package_dry_run"),
		anyRatio: set.Bool("any-ratio", false, "cli.flag.package_any_ratio"),
	}
	set.Var(&flags.sets, "set", "cli.flag.clone_set")
	return func(env *Env, args []string) error {
		chosen, err := flags.chosen(set)
		if err != nil {
			return err
		}
		switch chosen {
		case "extract":
			if err := two(args, "FILE DIR"); err != nil {
				return err
			}
			return env.extractPackage(args[0], args[1], flags, output)
		case "list", "verify":
			file, err := one(args, "FILE")
			if err != nil {
				return err
			}
			return env.readPackage(file, flags, output)
		case "submit":
			file, err := one(args, "FILE")
			if err != nil {
				return err
			}
			return env.submitPackage(connection, file, flags, output)
		}
		job, err := one(args, "JOB")
		if err != nil {
			return err
		}
		return env.pack(connection, job, flags, output)
	}
}

// chosen is the one thing that is to be done, "" for packing. A flag that has nothing to
// do with it is a mistake: somebody thinks that it has.
func (f *packageFlags) chosen(set *flag.FlagSet) (chosen string, err error) {
	for name, on := range map[string]bool{"list": *f.list, "verify": *f.verify, "extract": *f.extract, "submit": *f.submit} {
		switch {
		case on && chosen != "":
			return "", usagef("cli.flags_exclude", "first", "-"+min(name, chosen), "second", "-"+max(name, chosen))
		case on:
			chosen = name
		}
	}
	of := map[string]string{
		"o": "", "force": "", "no-code": "", "no-outputs": "", "no-logs": "", "rank": "",
		"name": "submit", "dry-run": "submit", "set": "submit",
	}
	var stray string
	set.Visit(func(given *flag.Flag) {
		if belongs, bound := of[given.Name]; bound && belongs != chosen {
			stray = given.Name
		}
	})
	switch {
	case stray == "":
		return chosen, nil
	case chosen == "":
		return "", usagef("cli.package.only_with", "flag", "-"+stray, "with", "-"+of[stray])
	}
	return "", usagef("cli.flags_exclude", "first", "-"+stray, "second", "-"+chosen)
}

// packedShown is what a program is told of a package.
type packedShown struct {
	File    string           `json:"file"`
	Digest  string           `json:"digest"` // of its manifest, which has the digests of all the rest
	Whole   bool             `json:"whole"`
	Head    *parcel.Head     `json:"head"`
	Entries []parcel.Entry   `json:"entries"`
	Wrong   []parcel.Problem `json:"wrong"` // what is not as it was packed
}

// printHead says in a few lines what a package is.
func (env *Env) printHead(file string, head *parcel.Head, digest string) {
	fmt.Fprintln(env.Stdout, env.text("cli.package.head", "file", safe(filepath.Base(file)), "entries", head.Entries, "size", size(head.Bytes),
		"digest", short12(digest)))
	ended := env.text("cli.package.not_ended")
	if head.Job.FinishedAt != 0 {
		ended = when(head.Job.FinishedAt)
	}
	fmt.Fprintf(env.Stdout, "  %s\n", env.text("cli.package.job", "name", safe(head.Job.Name), "id", safe(short(head.Job.ID)), "project", safe(head.Job.Project),
		"state", safe(string(head.Job.State)), "ended", ended))
	if c := head.Code; c != nil {
		text := env.text("cli.code.of_tree", "files", c.Files, "size", size(c.Bytes), "tree", short12(c.Tree))
		if git := env.gitText(c.Git); git != "" {
			text += "; git " + git
		}
		fmt.Fprintf(env.Stdout, "  %s\n", env.text("cli.package.code", "code", text))
	}
}

// short12 is what people are shown of a digest.
func short12(digest string) string {
	digits := strings.TrimPrefix(digest, "sha256:")
	return safe(digits[:min(len(digits), 12)])
}

// printLeftOut says what of a run is not in its package.
func (env *Env) printLeftOut(left []parcel.LeftOut) {
	for i, one := range left {
		if i == leftShown {
			fmt.Fprintln(env.Stderr, env.text("cli.package.left_more", "count", len(left)-i))
			return
		}
		fmt.Fprintln(env.Stderr, env.text("cli.package.left", "path", safe(one.Path), "reason", safe(one.Reason)))
	}
}

// leftShown is how many things that are left out are named on a screen; -json has all.
const leftShown = 20

// printWrong says what of a package is not as it was packed.
func (env *Env) printWrong(wrong []parcel.Problem) {
	for _, one := range wrong {
		fmt.Fprintln(env.Stderr, env.text("cli.package.wrong", "path", safe(one.Path), "what", env.text("cli.package.wrong."+one.What)))
	}
}

func damaged(file string, count int) error {
	return structs.NewError(structs.CodeInvalid, "cli.package.damaged", "file", file, "count", count)
}

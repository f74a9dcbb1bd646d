package command

import (
	"flag"
	"fmt"
	"io"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// declareFileFilter declares the flags that say whose files are meant.
func declareFileFilter(set *flag.FlagSet) *api.FileFilter {
	filter := new(api.FileFilter)
	set.Uint64Var(&filter.Attempt, "attempt", 0, "cli.flag.file_attempt")
	set.IntVar(&filter.Rank, "rank", 0, "cli.flag.file_rank")
	set.IntVar(&filter.Subjob, "subjob", 0, "cli.flag.file_subjob")
	return filter
}

// jobFiles lists a directory that a job wrote, or prints a file.
func jobFiles(set *flag.FlagSet) func(*Env, []string) error {
	connection, output, filter := declareConnection(set), declareOutput(set), declareFileFilter(set)
	return func(env *Env, args []string) error {
		if len(args) == 0 {
			return usagef("cli.missing_argument", "argument", "JOB")
		}
		name, err := atMostOne(args[1:])
		if err != nil {
			return err
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		list, err := client.Files(env.Context, args[0], name, *filter)
		if err != nil {
			return err
		}
		if !list.Entry.Dir && !output.forPrograms() {
			return env.copyFile(client, args[0], name, *filter, env.Stdout, 0)
		}
		return env.show(output, list, func() { env.printFiles(list) })
	}
}

func (env *Env) printFiles(list *api.FileList) {
	table := newTable(env.Stdout, env.text("cli.col.size"), env.text("cli.col.modified"), env.text("cli.col.name"))
	for i := range list.Entries {
		e := &list.Entries[i]
		name, bytes := safe(e.Name), size(e.Size)
		switch {
		case e.Dir:
			name, bytes = name+"/", "-"
		case e.Link:
			name, bytes = name+"@", "-"
		}
		table.row(bytes, when(e.Modified), name)
	}
	if len(table.rows) == 0 {
		fmt.Fprintln(env.Stdout, env.text("cli.files.empty"))
		return
	}
	table.print()
	if list.More {
		fmt.Fprintln(env.Stderr, env.text("cli.files.more", "max", structs.FileEntriesMax))
	}
}

func (env *Env) copyFile(client *api.Client, job, name string, filter api.FileFilter, to io.Writer, offset int64) error {
	from, err := client.OpenFile(env.Context, job, name, filter, offset)
	if err != nil {
		return err
	}
	defer from.Close()
	if _, err := io.Copy(to, from); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return nil
}

package command

import (
	"flag"
	"fmt"
	"strings"

	"nomadlike/nomadlike/api"
)

// jobTag shows the tags of a job, or adds and removes some.
func jobTag(set *flag.FlagSet) func(*Env, []string) error {
	return annotating(set, func(args []string) (request api.JobAnnotateRequest, asked bool, err error) {
		for _, word := range args {
			if tag, ok := strings.CutPrefix(word, "-"); ok {
				request.Remove = append(request.Remove, tag)
			} else {
				request.Add = append(request.Add, strings.TrimPrefix(word, "+"))
			}
		}
		return request, len(args) > 0, nil
	}, func(env *Env, now *api.JobAnnotations) {
		if len(now.Tags) == 0 {
			fmt.Fprintln(env.Stdout, env.text("cli.job.no_tags"))
			return
		}
		fmt.Fprintln(env.Stdout, safe(strings.Join(now.Tags, " ")))
	})
}

// jobNote shows the note of a job, or writes one; an empty text removes it.
func jobNote(set *flag.FlagSet) func(*Env, []string) error {
	return annotating(set, func(args []string) (request api.JobAnnotateRequest, asked bool, err error) {
		text, err := atMostOne(args)
		if err != nil {
			return request, false, usagef("cli.job.note_quotes")
		}
		request.Note = &text
		return request, len(args) > 0, nil
	}, func(env *Env, now *api.JobAnnotations) {
		if now.Note == "" {
			fmt.Fprintln(env.Stdout, env.text("cli.job.no_note"))
			return
		}
		for line := range strings.SplitSeq(now.Note, "\n") {
			fmt.Fprintln(env.Stdout, safe(line))
		}
	})
}

// annotating is a verb that shows what people wrote on a job after it changed what
// its arguments say.
func annotating(set *flag.FlagSet, read func([]string) (request api.JobAnnotateRequest, asked bool, err error), print func(*Env, *api.JobAnnotations)) func(*Env, []string) error {
	connection, output := declareConnection(set), declareOutput(set)
	return func(env *Env, args []string) error {
		if len(args) == 0 {
			return usagef("cli.missing_argument", "argument", "JOB")
		}
		request, asked, err := read(args[1:])
		if err != nil {
			return err
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		var now *api.JobAnnotations
		if asked {
			now, err = client.AnnotateJob(env.Context, args[0], request)
		} else {
			now, err = annotationsOf(env, client, args[0])
		}
		if err != nil {
			return err
		}
		return env.show(output, now, func() { print(env, now) })
	}
}

// annotationsOf reads what is written on a job.
func annotationsOf(env *Env, client *api.Client, id string) (*api.JobAnnotations, error) {
	detail, meta, err := client.Job(env.Context, id, nil)
	if err != nil {
		return nil, err
	}
	return &api.JobAnnotations{JobID: detail.Job.ID, Index: meta.Index, Tags: append([]string{}, detail.Job.Tags...), Note: detail.Job.Note}, nil
}

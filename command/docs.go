package command

import (
	"errors"
	"flag"
	"fmt"
	"strings"

	"nomadlike/nomadlike/structs"
	"nomadlike/website"
)

// docs prints a page of the guides that the binary carries, or lists the pages.
func docs(set *flag.FlagSet) func(*Env, []string) error {
	output := declareOutput(set)
	return func(env *Env, args []string) error {
		if len(args) > 1 {
			return usagef("cli.extra_argument", "argument", safe(args[1]))
		}
		topics, err := website.Topics(website.Files(), string(env.Language))
		if errors.Is(err, website.ErrNotBuilt) {
			return structs.NewError(structs.CodeUnavailable, "cli.docs.not_built")
		}
		if err != nil {
			return err
		}
		if len(args) == 0 {
			return env.show(output, topics, func() {
				table := newTable(env.Stdout, env.text("cli.col.topic"), env.text("cli.col.title"))
				for _, topic := range topics {
					table.row(topic.Name, topic.Title)
				}
				table.print()
			})
		}
		name, err := topicOf(topics, args[0])
		if err != nil {
			return err
		}
		page, err := website.Page(website.Files(), string(env.Language), name)
		if err != nil {
			return err
		}
		return env.show(output, map[string]string{"name": name, "markdown": string(page)}, func() { env.printPage(string(page)) })
	}
}

// topicOf finds the page that a person means: by its name, by the end of its name,
// or as the only one whose name or title holds the word.
func topicOf(topics []website.Topic, asked string) (string, error) {
	var like []string
	low := strings.ToLower(asked)
	for _, topic := range topics {
		if topic.Name == low || strings.HasSuffix(topic.Name, "/"+low) {
			return topic.Name, nil
		}
		if strings.Contains(topic.Name, low) || strings.Contains(strings.ToLower(topic.Title), low) {
			like = append(like, topic.Name)
		}
	}
	switch len(like) {
	case 0:
		return "", structs.NewError(structs.CodeNotFound, "cli.docs.no_topic", "topic", safe(asked))
	case 1:
		return like[0], nil
	}
	return "", structs.NewError(structs.CodeInvalid, "cli.docs.topics", "topic", safe(asked), "topics", strings.Join(like, ", "))
}

// printPage prints Markdown; on a terminal its headings stand out and the marks of
// code and emphasis are left out.
func (env *Env) printPage(page string) {
	if !env.Stdout.Colour {
		fmt.Fprint(env.Stdout, page)
		return
	}
	code := false
	for line := range strings.Lines(page) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "```"):
			code = !code
			continue
		case code:
			line = "    " + line
		case strings.HasPrefix(line, "#"):
			line = env.Stdout.paint("1", strings.TrimLeft(line, "# "))
		default:
			line = strings.NewReplacer("**", "", "`", "").Replace(line)
		}
		fmt.Fprintln(env.Stdout, line)
	}
}

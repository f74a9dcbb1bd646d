package command

import (
	"flag"
	"fmt"
	"strings"

	"nomadlike/jobspec"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

func templateVerbs() []verb {
	return []verb{
		{path: "template list", setup: templateList},
		{path: "template show", args: "NAME", setup: templateShow},
		{path: "template save", args: "NAME [FILE]", setup: templateSave},
		{path: "template rm", args: "NAME", setup: templateRemove},
	}
}

// templateList lists what one may begin a job with: what was saved, then what is built in.
func templateList(set *flag.FlagSet) func(*Env, []string) error {
	return reading("", func(env *Env, client *api.Client, _ string) ([]api.TemplateInfo, error) {
		list, err := client.Templates(env.Context)
		if err != nil {
			return nil, err
		}
		return all(list.Templates), nil
	}, func(env *Env, templates []api.TemplateInfo) {
		if len(templates) == 0 {
			fmt.Fprintln(env.Stdout, env.text("cli.template.list_empty"))
		} else {
			table := newTable(env.Stdout, env.text("cli.col.name"), env.text("cli.col.secret_of"), env.text("cli.col.set_by"), env.text("cli.col.set_at"), env.text("cli.col.description"))
			for i := range templates {
				t := &templates[i]
				of := t.Project
				if t.Own {
					of = env.text("cli.secret.mine")
				}
				table.row(safe(t.Name), safe(of), safe(t.UpdatedBy), when(t.UpdatedAt), safe(t.Description))
			}
			table.print()
		}
		fmt.Fprintln(env.Stdout, env.text("cli.template.built_in", "kinds", strings.Join(jobspec.SkeletonKinds(), ", ")))
	})(set)
}

// template reads the template of a name: the caller's own where there is one, else the
// project's.
func (env *Env) template(client *api.Client, name string) (*api.Template, error) {
	own, err := client.Template(env.Context, name, true)
	if err == nil || structs.CodeOf(err) != structs.CodeNotFound {
		return own, err
	}
	shared, err := client.Template(env.Context, name, false)
	if err == nil || structs.CodeOf(err) != structs.CodeNotFound {
		return shared, err
	}
	var names []string
	if list, failure := client.Templates(env.Context); failure == nil {
		for i := range list.Templates {
			names = append(names, list.Templates[i].Name)
		}
	}
	if near := nearest(name, names); near != "" {
		return nil, structs.NewError(structs.CodeNotFound, "cli.template.nearest", "template", safe(name), "near", near)
	}
	return nil, structs.NewError(structs.CodeNotFound, "cli.template.unknown", "template", safe(name))
}

// templateText is the job file of a template.
func (env *Env) templateText(connection connectionFlags, name string) ([]byte, error) {
	client, err := env.connect(connection)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	template, err := env.template(client, name)
	if err != nil {
		return nil, err
	}
	return []byte(template.HCL), nil
}

// templateShow prints the job file of a template, and nothing else, so that it may go to
// a file or a pipe.
func templateShow(set *flag.FlagSet) func(*Env, []string) error {
	return reading("NAME", (*Env).template, func(env *Env, template *api.Template) {
		fmt.Fprint(env.Stdout, safeText(template.HCL))
	})(set)
}

// templateSave keeps a job file as a template. It says what it replaces before it does.
func templateSave(set *flag.FlagSet) func(*Env, []string) error {
	connection, output := declareConnection(set), declareOutput(set)
	mine := set.Bool("mine", false, "cli.flag.template_mine")
	description := set.String("description", "", "cli.flag.template_description")
	force := set.Bool("force", false, "cli.flag.template_force")
	return func(env *Env, args []string) error {
		path := "job.hcl"
		if len(args) == 2 {
			path, args = args[1], args[:1]
		}
		name, err := one(args, "NAME")
		if err != nil {
			return err
		}
		text, err := env.readSource(path)
		if err != nil {
			return err
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		request := api.TemplateRequest{Description: *description, HCL: string(text)}
		known, err := client.Template(env.Context, name, *mine)
		switch {
		case err == nil && !*force:
			return structs.NewError(structs.CodeConflict, "cli.template.exists", "template", safe(name), "by", safe(known.UpdatedBy))
		case err == nil && *description == "":
			request.Description = known.Description
		case err != nil && structs.CodeOf(err) != structs.CodeNotFound:
			return err
		}
		changed, err := client.PutTemplate(env.Context, name, *mine, request)
		if err != nil {
			return err
		}
		return env.show(output, changed, func() {
			fmt.Fprintln(env.Stdout, env.text("cli.template.saved", "template", safe(name), "path", path))
		})
	}
}

func templateRemove(set *flag.FlagSet) func(*Env, []string) error {
	connection, output := declareConnection(set), declareOutput(set)
	mine := set.Bool("mine", false, "cli.flag.template_mine")
	yes := set.Bool("yes", false, "cli.flag.yes")
	return func(env *Env, args []string) error {
		name, err := one(args, "NAME")
		if err != nil {
			return err
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		known, err := client.Template(env.Context, name, *mine)
		if err != nil {
			return err
		}
		if err := env.confirm(*yes, env.text("cli.template.ask", "template", safe(known.Name), "by", safe(known.CreatedBy))); err != nil {
			return err
		}
		changed, err := client.DeleteTemplate(env.Context, name, *mine)
		if err != nil {
			return err
		}
		return env.show(output, changed, func() { fmt.Fprintln(env.Stdout, env.text("cli.template.removed", "template", safe(name))) })
	}
}

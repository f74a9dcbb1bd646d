package command

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

func dataVerbs() []verb {
	return []verb{
		{path: "data ls", setup: dataList},
		{path: "data show", args: "NAME", setup: dataShow},
		{path: "data versions", args: "NAME", setup: dataVersions},
		{path: "data update", args: "NAME", setup: dataUpdate},
		{path: "data tag", args: "NAME@VERSION TAG", setup: dataTag},
		{path: "data mark", args: "NAME", setup: dataMark},
		{path: "data rm", args: "NAME[@VERSION]", setup: dataRemove},
		{path: "data register", args: "NAME", setup: dataRegister},
	}
}

// dataFlags say which named data is meant.
type dataFlags struct {
	connection connectionFlags
	output     outputFlags
	kind       *string
	of         *string
}

func declareData(set *flag.FlagSet) *dataFlags {
	return &dataFlags{
		connection: declareConnection(set), output: declareOutput(set),
		kind: set.String("kind", structs.StorageDataset, "cli.flag.data_kind"),
		of:   set.String("of", "", "cli.flag.data_of"),
	}
}

// meant is what an argument NAME, NAME@VERSION or NAME@TAG says.
type meant struct {
	api.DataName
	version int
	tag     string
}

func (f *dataFlags) named(text string) meant {
	name, version, tag := structs.SplitDataName(text)
	return meant{DataName: api.DataName{Kind: *f.kind, Name: name, Project: *f.of}, version: version, tag: tag}
}

// dataVerb is a verb about named data; do is called with a client.
func dataVerb(set *flag.FlagSet, args string, do func(env *Env, client *api.Client, flags *dataFlags, args []string) error) func(*Env, []string) error {
	flags := declareData(set)
	return func(env *Env, given []string) error {
		if names := strings.Fields(args); len(given) != len(names) {
			return argumentsProblem(given, names)
		}
		client, err := env.connect(flags.connection)
		if err != nil {
			return err
		}
		defer client.Close()
		return do(env, client, flags, given)
	}
}

// argumentsProblem names the argument that is missing, or too many.
func argumentsProblem(given, names []string) error {
	if len(given) < len(names) {
		return usagef("cli.missing_argument", "argument", names[len(given)])
	}
	return usagef("cli.extra_argument", "argument", safe(given[len(names)]))
}

func dataList(set *flag.FlagSet) func(*Env, []string) error {
	connection, output := declareConnection(set), declareOutput(set)
	var query api.DataQuery
	set.StringVar(&query.Kind, "kind", "", "cli.flag.data_kinds")
	set.BoolVar(&query.All, "all", false, "cli.flag.data_all")
	set.BoolVar(&query.Favourites, "favourites", false, "cli.flag.data_favourites")
	return func(env *Env, args []string) error {
		if err := none(args); err != nil {
			return err
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		list, err := client.Data(env.Context, query)
		if err != nil {
			return err
		}
		return env.show(output, list, func() { env.printDataList(list) })
	}
}

func (env *Env) printDataList(list *api.DataList) {
	if len(list.Objects) == 0 {
		fmt.Fprintln(env.Stdout, env.text("cli.data.list_empty"))
	} else {
		table := newTable(env.Stdout, env.text("cli.col.name"), env.text("cli.col.kind"), env.text("cli.col.newest"), env.text("cli.col.files"), env.text("cli.col.size"),
			env.text("cli.col.project"), env.text("cli.col.access"), env.text("cli.col.owner"), env.text("cli.col.description"))
		for i := range list.Objects {
			d := &list.Objects[i]
			name := d.Object.Name
			if d.Favourite {
				name += " *"
			}
			newest, files, size := "-", "-", "-"
			if d.Newest > 0 {
				newest, files, size = fmt.Sprint(d.Newest), fmt.Sprint(d.Files), structs.FormatSize(d.Bytes)
			}
			table.row(safe(name), env.text("word."+d.Object.Kind), newest, files, size, safe(d.Object.Project), env.dataAccess(&d.Object), firstOf(safe(d.Object.Owner), "-"),
				firstOf(safe(firstLine(d.Object.Description)), "-"))
		}
		table.print()
	}
	if list.Quota > 0 {
		fmt.Fprintln(env.Stdout, env.text("cli.data.quota", "used", structs.FormatSize(list.Used), "quota", structs.FormatSize(list.Quota)))
	}
}

// labelText is labels as flags say them.
func labelText(labels map[string]string) string {
	var texts []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		texts = append(texts, key+"="+labels[key])
	}
	return strings.Join(texts, " ")
}

// firstLine is the first line of a text.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

func (env *Env) dataAccess(object *structs.DataObject) string {
	if object.Published {
		return env.text("cli.data.published")
	}
	return env.text("cli.data.access." + object.Access)
}

func dataShow(set *flag.FlagSet) func(*Env, []string) error {
	return dataVerb(set, "NAME", func(env *Env, client *api.Client, flags *dataFlags, args []string) error {
		detail, err := client.DataWithOutputs(env.Context, flags.named(args[0]).DataName)
		if err != nil {
			return err
		}
		return env.show(flags.output, detail, func() { env.printData(detail) })
	})
}

func (env *Env) printData(detail *api.DataDetail) {
	object := &detail.Object
	fields := newTable(env.Stdout, "", "")
	row := func(id, value string) {
		if value != "" {
			fields.row(env.text(id), safe(value))
		}
	}
	row("cli.col.name", object.Name)
	row("cli.col.kind", env.text("word."+object.Kind))
	row("cli.col.description", object.Description)
	row("cli.col.project", object.Project)
	row("cli.col.owner", object.Owner)
	row("cli.col.access", env.dataAccess(object))
	row("cli.col.storage", object.Storage)
	row("cli.col.labels", labelText(object.Labels))
	row("cli.col.size", structs.FormatSize(detail.AllBytes))
	row("cli.col.created", fmt.Sprintf("%s, %s", when(object.MadeAt), object.MadeBy))
	fields.print()
	fmt.Fprintln(env.Stdout)
	env.printDataVersions(object)
	env.printDataOutputs(detail.Outputs)
	if len(detail.Jobs) == 0 {
		return
	}
	fmt.Fprintln(env.Stdout)
	jobs := newTable(env.Stdout, env.text("cli.col.used_by"), env.text("cli.col.project"), env.text("cli.col.user"), env.text("cli.col.version"))
	for i := range detail.Jobs {
		j := &detail.Jobs[i]
		jobs.row(safe(j.Name), safe(j.Project), safe(j.User), fmt.Sprint(j.Version))
	}
	jobs.print()
}

func dataVersions(set *flag.FlagSet) func(*Env, []string) error {
	return dataVerb(set, "NAME", func(env *Env, client *api.Client, flags *dataFlags, args []string) error {
		detail, err := client.DataObject(env.Context, flags.named(args[0]).DataName)
		if err != nil {
			return err
		}
		return env.show(flags.output, all(detail.Object.Versions), func() { env.printDataVersions(&detail.Object) })
	})
}

// printDataVersions lists versions, newest first.
func (env *Env) printDataVersions(object *structs.DataObject) {
	if len(object.Versions) == 0 {
		fmt.Fprintln(env.Stdout, env.text("cli.data.no_versions"))
		return
	}
	apart := slices.ContainsFunc(object.Versions, func(v structs.DataVersion) bool { return v.Origin != nil && v.Origin.Apart })
	heads := []string{
		env.text("cli.col.version"), env.text("cli.col.tag"), env.text("cli.col.state"), env.text("cli.col.files"), env.text("cli.col.size"),
		env.text("cli.col.created"), env.text("cli.col.by"), env.text("cli.col.digest"),
	}
	if apart {
		heads = append(heads, env.text("cli.col.subjob"))
	}
	table := newTable(env.Stdout, heads...)
	for i := len(object.Versions) - 1; i >= 0; i-- {
		v := &object.Versions[i]
		files, size, of := fmt.Sprint(v.Files), structs.FormatSize(v.Bytes), shortDigest(v.Digest)
		if v.State == structs.DataRegistered {
			files, size, of = "-", "-", env.text("cli.data.source", "source", safe(v.Source))
		}
		cells := []string{fmt.Sprint(v.Number), firstOf(safe(v.Tag), "-"), env.text("cli.data.state." + v.State), files, size, when(v.MadeAt), firstOf(safe(v.MadeBy), "-"), firstOf(of, "-")}
		if o := v.Origin; apart && o != nil && o.Apart {
			cells = append(cells, short(v.JobID)+fmt.Sprintf(" s%d", o.Subjob))
		} else if apart {
			cells = append(cells, "-")
		}
		table.row(cells...)
	}
	table.print()
}

// shortDigest is enough of a digest to compare two by eye.
func shortDigest(digest string) string {
	const shown = len("sha256:") + 12
	return digest[:min(len(digest), shown)]
}

// dataUpdate changes what named data says of itself; what no flag says stays.
func dataUpdate(set *flag.FlagSet) func(*Env, []string) error {
	access := set.String("access", "", "cli.flag.data_access")
	description := set.String("description", "", "cli.flag.data_description")
	owner := set.String("owner", "", "cli.flag.data_owner")
	publish := set.Bool("publish", false, "cli.flag.data_publish")
	var labels listFlag
	set.Var(&labels, "label", "cli.flag.data_label")
	return dataVerb(set, "NAME", func(env *Env, client *api.Client, flags *dataFlags, args []string) error {
		of := flags.named(args[0]).DataName
		known, err := client.DataObject(env.Context, of)
		if err != nil {
			return err
		}
		var request api.DataRequest
		set.Visit(func(given *flag.Flag) {
			switch given.Name {
			case "access":
				request.Access = access
			case "description":
				request.Description = description
			case "owner":
				request.Owner = owner
			case "publish":
				request.Published = publish
			}
		})
		if len(labels) > 0 {
			next := known.Object.Copy().Labels
			if next == nil {
				next = map[string]string{}
			}
			for _, label := range labels {
				key, value, _ := strings.Cut(label, "=")
				if next[key] = value; value == "" {
					delete(next, key)
				}
			}
			request.Labels = &next
		}
		if request == (api.DataRequest{}) {
			return usagef("cli.data.nothing")
		}
		changed, err := client.PutData(env.Context, of, request)
		if err != nil {
			return err
		}
		return env.show(flags.output, changed, func() {
			fmt.Fprintln(env.Stdout, env.text("cli.data.updated", "kind", *flags.kind, "name", safe(of.Name)))
		})
	})
}

func dataTag(set *flag.FlagSet) func(*Env, []string) error {
	remove := set.Bool("remove", false, "cli.flag.data_untag")
	return dataVerb(set, "NAME@VERSION TAG", func(env *Env, client *api.Client, flags *dataFlags, args []string) error {
		of := flags.named(args[0])
		detail, err := client.DataObject(env.Context, of.DataName)
		if err != nil {
			return err
		}
		version, err := chosenVersion(detail, of)
		if err != nil {
			return err
		}
		request := api.DataTagRequest{Version: version.Number, Tag: args[1]}
		if *remove {
			if version.Tag != args[1] {
				return structs.NewError(structs.CodeNotFound, "cli.data.not_tagged", "name", of.Name, "version", version.Number, "tag", args[1])
			}
			request.Tag = ""
		}
		changed, err := client.TagData(env.Context, of.DataName, request)
		if err != nil {
			return err
		}
		return env.show(flags.output, changed, func() {
			id := "cli.data.tagged"
			if *remove {
				id = "cli.data.untagged"
			}
			fmt.Fprintln(env.Stdout, env.text(id, "name", safe(of.Name), "version", version.Number, "tag", safe(args[1])))
		})
	})
}

// chosenVersion is the version that NAME@VERSION or NAME@TAG says, the newest for NAME.
func chosenVersion(detail *api.DataDetail, of meant) (*structs.DataVersion, error) {
	object := &detail.Object
	var found *structs.DataVersion
	switch {
	case of.tag != "":
		found = object.Tagged(of.tag)
	case of.version > 0:
		found = object.Version(of.version)
	default:
		found = object.Newest()
	}
	if found == nil {
		return nil, structs.NewError(structs.CodeNotFound, "cli.data.no_version", "kind", object.Kind, "name", object.Name, "version", firstOf(of.tag, fmt.Sprint(of.version)))
	}
	return found, nil
}

func dataMark(set *flag.FlagSet) func(*Env, []string) error {
	off := set.Bool("off", false, "cli.flag.data_unmark")
	return dataVerb(set, "NAME", func(env *Env, client *api.Client, flags *dataFlags, args []string) error {
		of := flags.named(args[0]).DataName
		changed, err := client.MarkData(env.Context, of, !*off)
		if err != nil {
			return err
		}
		return env.show(flags.output, changed, func() {
			id := "cli.data.marked"
			if *off {
				id = "cli.data.unmarked"
			}
			fmt.Fprintln(env.Stdout, env.text(id, "kind", *flags.kind, "name", safe(of.Name)))
		})
	})
}

// dataRemove removes one version, or the name with all of them, and says what goes
// before it asks.
func dataRemove(set *flag.FlagSet) func(*Env, []string) error {
	yes := set.Bool("yes", false, "cli.flag.yes")
	return dataVerb(set, "NAME[@VERSION]", func(env *Env, client *api.Client, flags *dataFlags, args []string) error {
		of := flags.named(args[0])
		detail, err := client.DataObject(env.Context, of.DataName)
		if err != nil {
			return err
		}
		number := 0
		question := env.text("cli.data.ask", "kind", *flags.kind, "name", safe(of.Name), "count", len(detail.Object.Versions), "size", structs.FormatSize(detail.AllBytes))
		if of.version > 0 || of.tag != "" || strings.Contains(args[0], "@") {
			version, err := chosenVersion(detail, of)
			if err != nil {
				return err
			}
			number = version.Number
			question = env.text("cli.data.ask_version", "kind", *flags.kind, "name", safe(of.Name), "version", number, "size", structs.FormatSize(version.Bytes))
		}
		if err := env.confirm(*yes, question); err != nil {
			return err
		}
		changed, err := client.DeleteData(env.Context, of.DataName, number)
		if err != nil {
			return err
		}
		return env.show(flags.output, changed, func() {
			if number > 0 {
				fmt.Fprintln(env.Stdout, env.text("cli.data.removed_version", "kind", *flags.kind, "name", safe(of.Name), "version", number))
				return
			}
			fmt.Fprintln(env.Stdout, env.text("cli.data.removed", "kind", *flags.kind, "name", safe(of.Name)))
		})
	})
}

// dataRegister has a directory of a storage be a version, without copying it.
func dataRegister(set *flag.FlagSet) func(*Env, []string) error {
	var request api.DataRegisterRequest
	set.StringVar(&request.Storage, "storage", "", "cli.flag.data_storage")
	set.StringVar(&request.Source, "source", "", "cli.flag.data_source")
	set.StringVar(&request.Tag, "tag", "", "cli.flag.data_tag")
	set.StringVar(&request.Access, "access", "", "cli.flag.data_access")
	set.StringVar(&request.Description, "description", "", "cli.flag.data_description")
	return dataVerb(set, "NAME", func(env *Env, client *api.Client, flags *dataFlags, args []string) error {
		for name, value := range map[string]string{"storage": request.Storage, "source": request.Source} {
			if value == "" {
				return usagef("cli.data.needs", "flag", name)
			}
		}
		of := flags.named(args[0]).DataName
		changed, err := client.RegisterData(env.Context, of, request)
		if err != nil {
			return err
		}
		return env.show(flags.output, changed, func() {
			fmt.Fprintln(env.Stdout, env.text("cli.data.registered", "kind", *flags.kind, "name", safe(of.Name), "version", changed.Version, "source", safe(request.Source), "storage", safe(request.Storage)))
		})
	})
}

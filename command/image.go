package command

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

func imageVerbs() []verb {
	return []verb{
		{path: "image list", setup: imageList},
		{path: "image show", args: "IMAGE", setup: imageShow},
		{path: "image set", args: "IMAGE", setup: imageSet},
		{path: "image unset", args: "IMAGE", setup: imageUnset},
		{path: "image pull", args: "IMAGE", setup: imagePull},
		{path: "image push", args: "IMAGE NAME", setup: imagePush},
		{path: "image tag", args: "IMAGE NAME", setup: imageTag},
		{path: "image rm", args: "IMAGE", setup: imageRemove},
	}
}

// imageList lists what nodes hold.
func imageList(set *flag.FlagSet) func(*Env, []string) error {
	filter := declareDeviceFilter(set)
	return reading("", func(env *Env, client *api.Client, _ string) (*api.ImageList, error) {
		return client.Images(env.Context, api.ImageFilter{Node: filter.Node, Pool: filter.Pool})
	}, func(env *Env, list *api.ImageList) {
		if len(list.Images) == 0 {
			fmt.Fprintln(env.Stdout, env.text("cli.image.list_empty"))
		} else {
			table := newTable(env.Stdout, env.text("cli.col.image"), env.text("cli.col.size"), env.text("cli.col.nodes"),
				env.text("cli.col.scope"), env.text("cli.col.devices"), env.text("cli.col.driver_version"), env.text("cli.col.description"))
			for _, image := range list.Images {
				bytes, nodes := "", strconv.Itoa(image.Count)
				if image.Count > 0 {
					bytes = size(image.Bytes)
				}
				if image.Variants > 1 {
					nodes += " " + env.text("cli.image.variants", "count", image.Variants)
				}
				table.row(safe(image.Name), bytes, nodes, safe(strings.Join(image.Scope, " ")), safe(strings.Join(image.Devices, " ")),
					safe(image.Driver), safe(image.Description))
			}
			table.print()
		}
		env.printAway(list)
	})(set)
}

// printAway says which nodes are missing in a list.
func (env *Env) printAway(list *api.ImageList) {
	if list.Left > 0 {
		fmt.Fprintln(env.Stdout, env.text("cli.image.left", "count", list.Left))
	}
	if len(list.Away) > 0 {
		fmt.Fprintln(env.Stdout, env.text("cli.image.away", "nodes", safe(strings.Join(list.Away, ", "))))
	}
}

// imageShow shows one image, and where it is.
func imageShow(set *flag.FlagSet) func(*Env, []string) error {
	return reading("IMAGE", func(env *Env, client *api.Client, name string) (*api.ImageEntry, error) {
		list, err := client.Images(env.Context, api.ImageFilter{Image: name})
		if err != nil {
			return nil, err
		}
		if len(list.Images) == 0 {
			return nil, structs.NewError(structs.CodeNotFound, "cli.image.unknown", "image", safe(name), "count", list.Asked)
		}
		return &list.Images[0], nil
	}, func(env *Env, image *api.ImageEntry) {
		fields := newTable(env.Stdout, "", "")
		row := func(id, value string) {
			if value != "" {
				fields.row(env.text(id), safe(value))
			}
		}
		row("cli.col.image", image.Name)
		row("cli.col.description", image.Description)
		row("cli.col.scope", strings.Join(image.Scope, " "))
		row("cli.col.devices", strings.Join(image.Devices, " "))
		row("cli.col.driver_version", image.Driver)
		switch image.From {
		case api.ImageDeclared:
			row("cli.col.declared", fmt.Sprintf("%s, %s", image.SetBy, when(image.SetAt)))
		case api.ImageLabels:
			row("cli.col.declared", env.text("cli.image.labels"))
		}
		if image.Count > 0 {
			row("cli.col.size", size(image.Bytes))
		}
		row("cli.col.digest", cmp.Or(image.Digest, image.ID))
		fields.print()
		if len(image.Nodes) == 0 {
			fmt.Fprintln(env.Stdout, env.text("cli.image.nowhere"))
			return
		}
		fmt.Fprintln(env.Stdout)
		table := newTable(env.Stdout, env.text("cli.col.node"), env.text("cli.col.pool"), "ID", env.text("cli.col.size"), env.text("cli.col.in_use"), env.text("cli.col.used_at"))
		for _, on := range image.Nodes {
			table.row(safe(on.Node), safe(on.Pool), short(strings.TrimPrefix(on.ID, "sha256:")), size(on.Bytes), env.onlyYes(on.InUse), when(on.UsedAt))
		}
		table.print()
	})(set)
}

// imageSet declares what an image is for.
func imageSet(set *flag.FlagSet) func(*Env, []string) error {
	connection := declareConnection(set)
	scope := set.String("scope", "", "cli.flag.image_scope")
	devices := set.String("devices", "", "cli.flag.image_devices")
	driver := set.String("driver", "", "cli.flag.image_driver")
	description := set.String("description", "", "cli.flag.image_description")
	return func(env *Env, args []string) error {
		name, err := one(args, "IMAGE")
		if err != nil {
			return err
		}
		request := api.ImageRequest{Name: name}
		set.Visit(func(given *flag.Flag) {
			switch given.Name {
			case "scope":
				request.Scope = wordsOf(*scope)
			case "devices":
				request.Devices = wordsOf(*devices)
			case "driver":
				request.Driver = driver
			case "description":
				request.Description = description
			}
		})
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		if _, err := client.DeclareImage(env.Context, request); err != nil {
			return err
		}
		fmt.Fprintln(env.Stdout, env.text("cli.image.set_done", "image", safe(name)))
		return nil
	}
}

// wordsOf splits a list at its commas; none of "".
func wordsOf(text string) []string {
	words := []string{}
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word != "" {
			words = append(words, word)
		}
	}
	return words
}

func imageUnset(set *flag.FlagSet) func(*Env, []string) error {
	return deleting("IMAGE", "cli.image.unset_done", func(env *Env, client *api.Client, name string) error {
		_, err := client.ForgetImage(env.Context, name)
		return err
	})(set)
}

// imageFlags choose nodes, and who signs in to a registry.
type imageFlags struct {
	node, pool, secret *string
	mine               *bool
}

func declareImageNodes(set *flag.FlagSet, signs bool) imageFlags {
	f := imageFlags{node: set.String("node", "", "cli.flag.node_only"), pool: set.String("pool", "", "cli.flag.pool_only")}
	if signs {
		f.secret, f.mine = set.String("secret", "", "cli.flag.image_secret"), set.Bool("mine", false, "cli.flag.mine")
	}
	return f
}

// nodes are those that the flags choose; for what must not be done everywhere one of
// them has to be given.
func (f imageFlags) nodes(env *Env, client *api.Client) ([]api.NodeSummary, error) {
	if *f.node == "" && *f.pool == "" {
		return nil, usagef("cli.image.where")
	}
	all, err := everyPage(&api.Query{}, func(query *api.Query) ([]api.NodeSummary, string, error) {
		page, _, err := client.Nodes(env.Context, query)
		if err != nil {
			return nil, "", err
		}
		return page.Nodes, page.Next, nil
	})
	if err != nil {
		return nil, err
	}
	chosen := slices.DeleteFunc(all, func(node api.NodeSummary) bool {
		named := node.Name == *f.node || node.ID == *f.node
		inPool := node.PoolName() == *f.pool && node.Status == structs.NodeReady && node.HasDriver(structs.DriverDocker)
		return !(*f.node != "" && named || *f.node == "" && inPool)
	})
	if len(chosen) == 0 {
		return nil, structs.NewError(structs.CodeNotFound, "cli.image.no_nodes", "name", safe(cmp.Or(*f.node, *f.pool)))
	}
	return chosen, nil
}

func (f imageFlags) request(act structs.ImageAct, image, to string) api.ImageActRequest {
	request := api.ImageActRequest{Act: act, Image: image, To: to}
	if f.secret != nil {
		request.Secret, request.Mine = *f.secret, *f.mine
	}
	return request
}

// imagePull has nodes fetch an image before jobs want it.
func imagePull(set *flag.FlagSet) func(*Env, []string) error {
	connection, output, where := declareConnection(set), declareOutput(set), declareImageNodes(set, true)
	atOnce := set.Int("at-once", 4, "cli.flag.image_at_once")
	return func(env *Env, args []string) error {
		image, err := one(args, "IMAGE")
		if err != nil {
			return err
		}
		if *atOnce < 1 {
			return usagef("cli.image.at_once")
		}
		return env.onNodes(connection, output, where, where.request(structs.ImagePull, image, ""), *atOnce)
	}
}

// imagePush has a node send an image to a registry.
func imagePush(set *flag.FlagSet) func(*Env, []string) error {
	return imageMove(set, structs.ImagePush, true)
}

// imageTag has nodes give an image another name.
func imageTag(set *flag.FlagSet) func(*Env, []string) error {
	return imageMove(set, structs.ImageTag, false)
}

func imageMove(set *flag.FlagSet, act structs.ImageAct, signs bool) func(*Env, []string) error {
	connection, output, where := declareConnection(set), declareOutput(set), declareImageNodes(set, signs)
	return func(env *Env, args []string) error {
		if err := two(args, "IMAGE NAME"); err != nil {
			return err
		}
		return env.onNodes(connection, output, where, where.request(act, args[0], args[1]), 1)
	}
}

// imageRemove has nodes remove an image.
func imageRemove(set *flag.FlagSet) func(*Env, []string) error {
	connection, output, where := declareConnection(set), declareOutput(set), declareImageNodes(set, false)
	return func(env *Env, args []string) error {
		image, err := one(args, "IMAGE")
		if err != nil {
			return err
		}
		return env.onNodes(connection, output, where, where.request(structs.ImageRemove, image, ""), 1)
	}
}

// imageOutcome is what became of an order on one node.
type imageOutcome struct {
	Node string            `json:"node"`
	Work structs.ImageWork `json:"work"`
	Err  *structs.Error    `json:"err,omitempty"` // it was not begun
}

func (o *imageOutcome) failure() *structs.Error { return cmp.Or(o.Err, o.Work.Err) }

// onNodes has nodes do something with an image, a few at a time, and waits for them.
func (env *Env) onNodes(connection connectionFlags, output outputFlags, where imageFlags, request api.ImageActRequest, atOnce int) error {
	client, err := env.connect(connection)
	if err != nil {
		return err
	}
	defer client.Close()
	nodes, err := where.nodes(env, client)
	if err != nil {
		return err
	}
	outcomes := make([]imageOutcome, len(nodes))
	shown := &imageProgress{env: env, quiet: output.forPrograms() || !env.Stdout.Terminal}
	var working sync.WaitGroup
	places := make(chan struct{}, atOnce)
	for i, node := range nodes {
		places <- struct{}{}
		working.Go(func() {
			defer func() { <-places }()
			outcomes[i] = actOn(env.Context, client, &node, request, shown)
		})
	}
	working.Wait()
	shown.clear()
	if err := env.Context.Err(); err != nil {
		return err // nodes go on with what they have begun
	}
	failed := 0
	for i := range outcomes {
		if outcomes[i].failure() != nil {
			failed++
		}
	}
	if err := env.show(output, outcomes, func() {
		for i := range outcomes {
			env.printOutcome(&outcomes[i])
		}
	}); err != nil {
		return err
	}
	if failed > 0 {
		return &exitError{code: ExitError}
	}
	return nil
}

// imageAskEvery is how often a node is asked how far it is.
const imageAskEvery = 500 * time.Millisecond

// actOn has one node do it, and waits until it has ended.
func actOn(ctx context.Context, client *api.Client, node *api.NodeSummary, request api.ImageActRequest, shown *imageProgress) imageOutcome {
	out := imageOutcome{Node: node.Name}
	fail := func(err error) imageOutcome {
		if !errors.As(err, &out.Err) {
			out.Err = structs.NewError(structs.CodeUnavailable, "client.image_failed", "image", request.Image, "cause", err)
		}
		return out
	}
	begun, err := client.ActOnImage(ctx, node.ID, request)
	if err != nil {
		return fail(err)
	}
	out.Work = begun.Work
	timer := time.NewTicker(imageAskEvery)
	defer timer.Stop()
	for out.Work.EndedAt == 0 {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return fail(ctx.Err())
		}
		known, err := client.NodeImages(ctx, node.ID, true)
		if err != nil {
			return fail(err)
		}
		at := slices.IndexFunc(known.Work, func(w structs.ImageWork) bool {
			return w.Act == out.Work.Act && w.Image == out.Work.Image && w.To == out.Work.To && w.StartedAt == out.Work.StartedAt
		})
		if at < 0 { // the agent was restarted
			return fail(structs.NewError(structs.CodeUnavailable, "agent.image_lost", "node", node.Name))
		}
		out.Work = known.Work[at]
		shown.show(node.Name, &out.Work)
	}
	return out
}

// imageProgress is one line of a terminal with what nodes are doing.
type imageProgress struct {
	env   *Env
	quiet bool
	mu    sync.Mutex
	width int
}

func (p *imageProgress) show(node string, work *structs.ImageWork) {
	if p.quiet || work.EndedAt != 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	line := p.env.text("cli.image.progress", "node", safe(node), "done", size(work.Done), "total", size(work.Total))
	fmt.Fprintf(p.env.Stdout, "\r%-*s", p.width, line)
	p.width = max(p.width, len(line))
}

func (p *imageProgress) clear() {
	if p.width > 0 {
		fmt.Fprintf(p.env.Stdout, "\r%-*s\r", p.width, "")
	}
}

func (env *Env) printOutcome(outcome *imageOutcome) {
	if failure := outcome.failure(); failure != nil {
		env.printError(env.text("cli.image.failed", "node", safe(outcome.Node), "cause", env.errorText(*failure)), env.hintText(*failure))
		return
	}
	work := &outcome.Work
	fmt.Fprintln(env.Stdout, env.text("cli.image.done."+string(work.Act), "node", safe(outcome.Node), "image", safe(work.Image), "to", safe(work.To),
		"size", size(work.Bytes), "digest", safe(cmp.Or(work.Digest, work.ID)), "span", span(work.EndedAt.Sub(work.StartedAt))))
}

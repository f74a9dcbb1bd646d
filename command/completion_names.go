package command

import (
	"context"
	"flag"
	"regexp"
	"slices"
	"strings"
	"time"

	"nomadlike/nomadlike/api"
)

const (
	completionPatience = 1500 * time.Millisecond // with the cluster: a person waits for a key to be answered
	completionMax      = 100                     // names that are offered
)

// completable are the names that are offered: shells put them into the line as they are,
// and whoever names a node or a job must not write there what a shell would obey.
var completable = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// noun is whose names stand where the next word is typed: JOB, NODE or POOL as help has
// it, "" for something else. Before are the words behind the program's name.
func noun(v verb, before []string) string {
	if v.raw {
		return ""
	}
	last := strings.TrimLeft(before[len(before)-1], "-")
	set := flag.NewFlagSet(v.path, flag.ContinueOnError)
	v.setup(set)
	if before[len(before)-1] != last {
		if f := set.Lookup(last); f != nil && !isSwitch(f) {
			return map[string]string{"pool": "POOL", "node": "NODE", "after": "JOB"}[last]
		}
	}
	words := before[len(strings.Fields(v.path)):]
	if slices.Contains(words, "--") {
		return ""
	}
	given, err := parseFlags(set, words, v.stopAtArg)
	places := strings.Fields(v.args)
	if err != nil || len(places) == 0 {
		return ""
	}
	place := places[min(len(given), len(places)-1)]
	if len(given) >= len(places) && !strings.HasSuffix(strings.Trim(place, "[]"), "...") {
		return ""
	}
	name, _, _ := strings.Cut(strings.TrimSuffix(strings.Trim(place, "[]"), "..."), "|")
	if name == "OTHER" {
		return "JOB"
	}
	return name
}

// names lists what of the cluster may stand for a word that begins with typed. A
// cluster that does not answer at once, or knows nobody here, offers none: the line that is
// typed is no place for errors.
func (env *Env) names(v verb, before []string, typed string) []string {
	ask := map[string]func(context.Context, *api.Client, string) ([]string, error){"JOB": jobNames, "NODE": nodeNames, "POOL": poolNames}[noun(v, before)]
	if ask == nil || typed != "" && !completable.MatchString(typed) {
		return nil
	}
	config, _, err := env.clientConfig(declareConnection(flag.NewFlagSet("", flag.ContinueOnError)))
	if err != nil {
		return nil
	}
	config.RetryFor = -1
	client, err := api.New(config)
	if err != nil {
		return nil
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(env.Context, completionPatience)
	defer cancel()
	found, err := ask(ctx, client, typed)
	if err != nil {
		return nil
	}
	return offered(found, typed)
}

// offered are the names that begin with typed, each once.
func offered(found []string, typed string) []string {
	var names []string
	for _, name := range found {
		if strings.HasPrefix(name, typed) && completable.MatchString(name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
		if len(names) == completionMax {
			break
		}
	}
	return names
}

// jobNames are those of the newest jobs, and ids where a beginning of them is typed.
func jobNames(ctx context.Context, client *api.Client, typed string) ([]string, error) {
	page, _, err := client.Jobs(ctx, api.JobFilter{Text: typed}, &api.Query{Stale: true, Limit: api.PageSizeMax})
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range page.Jobs {
		if job := &page.Jobs[i]; typed == "" || strings.HasPrefix(job.Name, typed) {
			names = append(names, job.Name)
		} else {
			names = append(names, job.ID)
		}
	}
	return names, nil
}

func nodeNames(ctx context.Context, client *api.Client, _ string) ([]string, error) {
	page, _, err := client.Nodes(ctx, &api.Query{Stale: true, Limit: api.PageSizeMax})
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range page.Nodes {
		names = append(names, page.Nodes[i].Name)
	}
	return names, nil
}

func poolNames(ctx context.Context, client *api.Client, _ string) ([]string, error) {
	list, _, err := client.Pools(ctx, &api.Query{Stale: true})
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range list.Pools {
		names = append(names, list.Pools[i].Pool.Name)
	}
	return names, nil
}

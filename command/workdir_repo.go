package command

import (
	"errors"
	"fmt"
	"strings"

	"nomadlike/nomadlike/repository"
	"nomadlike/nomadlike/structs"
)

// fetchRepository brings what a job says of a repository to this machine: its names,
// whose bytes come when it is known which go along.
func (env *Env) fetchRepository(w *structs.Workdir) (*repository.Checkout, error) {
	show := env.codeProgress("cli.code.fetching")
	defer show.done()
	return repository.Fetch(env.Context, w.Source, *w.Repo, repository.Options{
		Environ: env.Environ, Progress: func(received int64) { show.step(received, 0) },
	})
}

// close removes what was fetched, once.
func (c *code) close(env *Env) {
	if c == nil || c.fetched == nil {
		return
	}
	err := c.fetched.Close()
	c.fetched = nil
	if err != nil {
		if refused := new(structs.Error); errors.As(err, &refused) {
			fmt.Fprintln(env.Stderr, env.errorText(*refused))
		}
	}
}

// namesShown is how many names stand in a notice.
const namesShown = 5

// printFetched says what a commit has that did not come.
func (env *Env) printFetched(fetched *repository.Checkout) {
	for _, one := range []struct {
		id    string
		names []string
	}{{"cli.code.submodules", fetched.Empty}, {"cli.code.pointers", fetched.Pointers}} {
		if len(one.names) == 0 {
			continue
		}
		shown := make([]string, 0, namesShown)
		for _, name := range one.names[:min(len(one.names), namesShown)] {
			shown = append(shown, safe(name))
		}
		fmt.Fprintln(env.Stderr, env.text(one.id, "count", len(one.names), "names", strings.Join(shown, ", ")))
	}
}

// locationOf spells where code came from in one word: ADDRESS#REF:SUBDIR of a repository,
// as docker does; what the user wrote of everything else.
func locationOf(w *structs.Workdir) string {
	if w.Repo == nil {
		return w.Source
	}
	text := w.Source
	if w.Repo.Ref != "" || w.Repo.Subdir != "" {
		text += "#" + w.Repo.Ref
	}
	if w.Repo.Subdir != "" {
		text += ":" + w.Repo.Subdir
	}
	return text
}

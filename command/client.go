package command

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// retryFor is how long a command waits for a cluster that does not answer:
// longer than an election takes, shorter than a person's patience.
const retryFor = 4 * time.Second

// connect makes the client that flags, environment and the remembered
// context ask for, in that order.
func (env *Env) connect(flags connectionFlags) (*api.Client, error) {
	config, remembered, err := env.clientConfig(flags)
	if err != nil {
		return nil, err
	}
	client, err := api.New(config)
	if err == nil && config.Token == remembered.Token && config.Token != "" {
		env.extend(client, remembered)
	}
	return client, err
}

// clientConfig is what such a client is made of, and what is remembered.
func (env *Env) clientConfig(flags connectionFlags) (api.Config, api.Context, error) {
	remembered, err := env.loadContext()
	if err != nil {
		return api.Config{}, api.Context{}, err
	}
	config := api.Config{
		Address:  firstOf(*flags.address, env.Getenv("NOMADLIKE_ADDR"), remembered.Address),
		Token:    firstOf(*flags.token, env.Getenv("NOMADLIKE_TOKEN"), remembered.Token),
		CAPEM:    []byte(remembered.CA),
		Language: string(env.Language),
		Project:  firstOf(*flags.project, env.Getenv("NOMADLIKE_PROJECT"), remembered.Project),
		RetryFor: retryFor,
	}
	pem, err := env.caFile(flags)
	if err != nil {
		return api.Config{}, api.Context{}, err
	}
	if pem != nil {
		config.CAPEM = pem
	} else if remembered.CA != "" {
		config.LearnCA = env.learnCA(remembered)
	}
	if len(config.CAPEM) == 0 {
		return api.Config{}, api.Context{}, structs.NewError(structs.CodeInvalid, "cli.no_ca")
	}
	return config, remembered, nil
}

// learnCA remembers the CA that took the place of the one that the context has:
// the way to it is shown for a while only.
func (env *Env) learnCA(remembered api.Context) func([]byte) {
	var once sync.Once
	return func(caPEM []byte) {
		once.Do(func() {
			now, err := env.loadContext()
			if err == nil && now.CA == remembered.CA { // nobody signed in elsewhere meanwhile
				now.CA = string(caPEM)
				_, err = env.saveContext(now)
			}
			if err != nil {
				fmt.Fprintln(env.Stderr, env.text("cli.ca_not_kept", "problem", rootCause(err)))
			}
		})
	}
}

// caFile reads the CA that a flag or the environment names; nil without one.
func (env *Env) caFile(flags connectionFlags) ([]byte, error) {
	path := firstOf(*flags.caCert, env.Getenv("NOMADLIKE_CACERT"))
	if path == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, structs.NewError(structs.CodeInvalid, "cli.ca_unreadable", "path", path, "problem", rootCause(err))
	}
	return pem, nil
}

func (env *Env) loadContext() (api.Context, error) {
	if dir, err := api.ContextDir(env.Getenv); err == nil {
		return api.LoadContext(dir)
	}
	return api.Context{}, nil // no home directory means that nothing is remembered
}

func firstOf(values ...string) string {
	for _, value := range values {
		if value != "" {
			return value
		}
	}
	return ""
}

func rootCause(err error) string {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}

// one is the argument of a verb that takes exactly one.
func one(args []string, what string) (string, error) {
	switch {
	case len(args) == 0:
		return "", usagef("cli.missing_argument", "argument", what)
	case len(args) > 1:
		return "", usagef("cli.extra_argument", "argument", safe(args[1]))
	}
	return args[0], nil
}

// two checks that a verb was given its two arguments and no more; what is what
// people are told to be missing.
func two(args []string, what string) error {
	if len(args) < 2 {
		return usagef("cli.missing_argument", "argument", what)
	}
	return none(args[2:])
}

// openTwo is two, and connects. The caller closes the client.
func (env *Env) openTwo(connection connectionFlags, args []string, what string) (*api.Client, error) {
	if err := two(args, what); err != nil {
		return nil, err
	}
	return env.connect(connection)
}

// atMostOne is the argument of a verb that takes one or none; "" for none.
func atMostOne(args []string) (string, error) {
	if len(args) == 0 {
		return "", nil
	}
	return one(args, "")
}

func none(args []string) error {
	if len(args) > 0 {
		return usagef("cli.extra_argument", "argument", safe(args[0]))
	}
	return nil
}

// everyPage reads a list page by page, of PageSizeMax items unless the query has
// a limit. An empty list is not nil.
func everyPage[T any](query *api.Query, read func(*api.Query) (items []T, next string, err error)) ([]T, error) {
	if query.Limit == 0 {
		query.Limit = api.PageSizeMax
	}
	list := []T{}
	for {
		items, next, err := read(query)
		if err != nil {
			return nil, err
		}
		list = append(list, items...)
		if next == "" {
			return list, nil
		}
		query.After = next
	}
}

// allJobs reads every page.
func allJobs(ctx context.Context, client *api.Client, filter api.JobFilter, stale bool) ([]api.JobSummary, error) {
	return everyPage(&api.Query{Stale: stale}, func(query *api.Query) ([]api.JobSummary, string, error) {
		page, _, err := client.Jobs(ctx, filter, query)
		if err != nil {
			return nil, "", err
		}
		return page.Jobs, page.Next, nil
	})
}

// jsonLine writes value as one line of JSON.
func jsonLine(w io.Writer, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, safeText(string(text))+"\n")
	return err
}

// deletion is a verb that deletes one object and says so.
func deletion[T any](set *flag.FlagSet, what, done string, del func(*api.Client, context.Context, string) (*T, error)) func(*Env, []string) error {
	connection := declareConnection(set)
	return func(env *Env, args []string) error {
		id, err := one(args, what)
		if err != nil {
			return err
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		if _, err := del(client, env.Context, id); err != nil {
			return err
		}
		fmt.Fprintln(env.Stdout, env.text(done, "id", safe(id)))
		return nil
	}
}

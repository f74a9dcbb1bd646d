package command

import (
	"flag"
	"fmt"
	"slices"
	"strings"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

func serviceAccountVerbs() []verb {
	return []verb{
		{path: "service-account list", setup: serviceAccountList},
		{path: "service-account status", args: "NAME", setup: serviceAccountStatus},
		{path: "service-account create", args: "NAME", setup: serviceAccountCreate},
		{path: "service-account update", args: "NAME", setup: serviceAccountUpdate},
		{path: "service-account disable", args: "NAME", setup: serviceAccountDisable},
		{path: "service-account enable", args: "NAME", setup: serviceAccountEnable},
		{path: "service-account delete", args: "NAME", setup: serviceAccountDelete},
		{path: "service-account token create", args: "NAME", setup: serviceTokenCreate},
		{path: "service-account token revoke", args: "NAME [TOKEN]", setup: serviceTokenRevoke},
	}
}

// serviceVerb is a verb about one service account; do is called with a client, and with
// the arguments after its name.
func serviceVerb(set *flag.FlagSet, more int, do func(env *Env, client *api.Client, of api.ServiceAccount, args []string) error) func(*Env, []string) error {
	connection := declareConnection(set)
	cluster := set.Bool("cluster", false, "cli.flag.service_cluster")
	return func(env *Env, args []string) error {
		name, err := one(args[:max(min(len(args), 1), len(args)-more)], "NAME")
		if err != nil {
			return err
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		return do(env, client, api.ServiceAccount{Name: name, Cluster: *cluster}, args[1:])
	}
}

func serviceAccountList(set *flag.FlagSet) func(*Env, []string) error {
	return reading("", func(env *Env, client *api.Client, _ string) ([]api.ServiceAccountDetail, error) {
		list, err := client.ServiceAccounts(env.Context)
		if err != nil {
			return nil, err
		}
		return all(list.Accounts), nil
	}, (*Env).printServiceAccounts)(set)
}

func (env *Env) printServiceAccounts(accounts []api.ServiceAccountDetail) {
	if len(accounts) == 0 {
		fmt.Fprintln(env.Stdout, env.text("cli.service.list_empty"))
		return
	}
	table := newTable(env.Stdout, env.text("cli.col.name"), env.text("cli.col.project"), env.text("cli.col.role"), env.text("cli.col.state"),
		env.text("cli.col.owner"), env.text("cli.col.tokens"), env.text("cli.col.last_used"))
	for i := range accounts {
		a := &accounts[i]
		tokens, used := "-", "-"
		if slices.Contains(a.Verbs, "write") || len(a.Tokens) > 0 {
			tokens, used = fmt.Sprint(len(a.Tokens)), when(lastUsed(a.Tokens))
		}
		table.row(safe(a.Account.Name), firstOf(safe(a.Account.Project), env.text("cli.service.of_cluster")), env.roleText(a.Account.Role),
			env.serviceState(&a.Account), firstOf(safe(a.Account.Owner), "-"), tokens, used)
	}
	table.print()
}

func lastUsed(tokens []structs.Token) (at structs.UnixNano) {
	for i := range tokens {
		at = max(at, tokens[i].UsedAt)
	}
	return at
}

func (env *Env) serviceState(account *structs.ServiceAccount) string {
	if account.Disabled {
		return env.text("cli.user.disabled")
	}
	return env.text("cli.user.active")
}

func serviceAccountStatus(set *flag.FlagSet) func(*Env, []string) error {
	output := declareOutput(set)
	return serviceVerb(set, 0, func(env *Env, client *api.Client, of api.ServiceAccount, _ []string) error {
		detail, err := client.ServiceAccount(env.Context, of)
		if err != nil {
			return err
		}
		return env.show(output, detail, func() { env.printServiceAccount(detail) })
	})
}

func (env *Env) printServiceAccount(detail *api.ServiceAccountDetail) {
	account := &detail.Account
	fields := newTable(env.Stdout, "", "")
	row := func(id, value string) {
		if value != "" {
			fields.row(env.text(id), safe(value))
		}
	}
	row("cli.col.name", account.Name)
	row("cli.col.user", detail.User)
	row("cli.col.description", account.Description)
	row("cli.col.project", firstOf(account.Project, env.text("cli.service.of_cluster")))
	row("cli.col.role", env.roleText(account.Role))
	state := env.serviceState(account)
	if account.Disabled {
		state = env.text("cli.user.disabled_by", "by", account.DisabledBy, "at", when(account.DisabledAt))
	}
	row("cli.col.state", state)
	row("cli.col.owner", account.Owner)
	row("cli.col.live", fmt.Sprint(detail.Live))
	row("cli.col.created", fmt.Sprintf("%s, %s", when(account.CreatedAt), account.CreatedBy))
	fields.print()
	if len(detail.Tokens) == 0 {
		return
	}
	fmt.Fprintln(env.Stdout)
	table := newTable(env.Stdout, env.text("cli.col.token"), env.text("cli.col.name"), env.text("cli.col.created"), env.text("cli.col.expires"),
		env.text("cli.col.last_used"), env.text("cli.col.used_from"), env.text("cli.col.good_for"))
	for i := range detail.Tokens {
		t := &detail.Tokens[i]
		table.row(t.ID, firstOf(safe(t.Name), "-"), when(t.CreatedAt), when(t.ExpiresAt), when(t.UsedAt), firstOf(safe(t.UsedFrom), "-"),
			firstOf(safe(strings.Join(slices.Concat(t.Verbs, t.Addresses), ", ")), "-"))
	}
	table.print()
}

// serviceFlags are what a service account says.
type serviceFlags struct {
	set     *flag.FlagSet
	request api.ServiceAccountRequest
}

func declareService(set *flag.FlagSet) *serviceFlags {
	f := &serviceFlags{set: set}
	set.StringVar(&f.request.Description, "description", "", "cli.flag.service_description")
	set.StringVar(&f.request.Owner, "owner", "", "cli.flag.service_owner")
	set.StringVar(&f.request.Role, "role", "", "cli.flag.service_role")
	return f
}

func serviceAccountCreate(set *flag.FlagSet) func(*Env, []string) error {
	flags := declareService(set)
	return serviceVerb(set, 0, func(env *Env, client *api.Client, of api.ServiceAccount, _ []string) error {
		switch _, err := client.ServiceAccount(env.Context, of); {
		case err == nil:
			return structs.NewError(structs.CodeConflict, "cli.service.exists", "account", of.Name)
		case structs.CodeOf(err) != structs.CodeNotFound:
			return err
		}
		if _, err := client.PutServiceAccount(env.Context, of, flags.request); err != nil {
			return err
		}
		made, err := client.ServiceAccount(env.Context, of)
		if err != nil {
			return err
		}
		fmt.Fprintln(env.Stdout, env.text("cli.service.created", "account", safe(of.Name), "user", safe(made.User), "role", env.roleText(made.Account.Role)))
		return nil
	})
}

func serviceAccountUpdate(set *flag.FlagSet) func(*Env, []string) error {
	flags := declareService(set)
	return serviceVerb(set, 0, func(env *Env, client *api.Client, of api.ServiceAccount, _ []string) error {
		known, err := client.ServiceAccount(env.Context, of)
		if err != nil {
			return err
		}
		next := flags.request
		described := false
		flags.set.Visit(func(given *flag.Flag) { described = described || given.Name == "description" })
		if !described {
			next.Description = known.Account.Description
		}
		if _, err := client.PutServiceAccount(env.Context, of, next); err != nil {
			return err
		}
		fmt.Fprintln(env.Stdout, env.text("cli.service.updated", "account", safe(of.Name)))
		return nil
	})
}

// serviceAccountDisable disables a service account. What becomes of its jobs is asked
// for where it has any, as of a person's.
func serviceAccountDisable(set *flag.FlagSet) func(*Env, []string) error {
	jobs := set.String("jobs", "", "cli.flag.user_jobs")
	to := set.String("to", "", "cli.flag.user_to")
	return serviceVerb(set, 0, func(env *Env, client *api.Client, of api.ServiceAccount, _ []string) error {
		becomes, err := whatBecomes(*jobs, *to)
		if err != nil {
			return err
		}
		if err := env.askOfJobs(client, of, becomes); err != nil {
			return err
		}
		if _, err := client.SetServiceAccountState(env.Context, of, api.ServiceAccountStateRequest{Disabled: true, Jobs: becomes, To: *to}); err != nil {
			return err
		}
		fmt.Fprintln(env.Stdout, env.text("cli.service.disable_done", "account", safe(of.Name)))
		return nil
	})
}

// askOfJobs refuses to take a service account out of use while it has jobs of which
// nothing was said.
func (env *Env) askOfJobs(client *api.Client, of api.ServiceAccount, becomes string) error {
	known, err := client.ServiceAccount(env.Context, of)
	if err == nil && known.Live > 0 && becomes == "" {
		return structs.NewError(structs.CodeConflict, "cli.user.jobs", "user", known.User, "count", known.Live)
	}
	return err
}

func serviceAccountEnable(set *flag.FlagSet) func(*Env, []string) error {
	return serviceVerb(set, 0, func(env *Env, client *api.Client, of api.ServiceAccount, _ []string) error {
		if _, err := client.SetServiceAccountState(env.Context, of, api.ServiceAccountStateRequest{}); err != nil {
			return err
		}
		fmt.Fprintln(env.Stdout, env.text("cli.service.enable_done", "account", safe(of.Name)))
		return nil
	})
}

func serviceAccountDelete(set *flag.FlagSet) func(*Env, []string) error {
	jobs := set.String("jobs", "", "cli.flag.service_jobs")
	to := set.String("to", "", "cli.flag.user_to")
	return serviceVerb(set, 0, func(env *Env, client *api.Client, of api.ServiceAccount, _ []string) error {
		becomes, err := whatBecomes(*jobs, *to)
		if err != nil {
			return err
		}
		if _, err := client.DeleteServiceAccount(env.Context, of, becomes, *to); err != nil {
			return err
		}
		fmt.Fprintln(env.Stdout, env.text("cli.service.deleted", "account", safe(of.Name)))
		return nil
	})
}

// serviceTokenCreate makes a token. Its secret goes to standard output and nothing else
// does, so that a script can put it where the pipeline finds it.
func serviceTokenCreate(set *flag.FlagSet) func(*Env, []string) error {
	output := declareOutput(set)
	name := set.String("name", "", "cli.flag.token_name")
	ttl := declareSpan(set, "ttl", 0, "cli.flag.service_ttl")
	var verbs, addresses listFlag
	set.Var(&verbs, "verb", "cli.flag.token_verb")
	set.Var(&addresses, "from", "cli.flag.token_from")
	return serviceVerb(set, 0, func(env *Env, client *api.Client, of api.ServiceAccount, _ []string) error {
		created, err := client.CreateServiceToken(env.Context, of, api.ServiceTokenRequest{Name: *name, TTL: ttl.value, Verbs: verbs, Addresses: addresses})
		if err != nil {
			return err
		}
		return env.show(output, created, func() {
			fmt.Fprintln(env.Stdout, created.Secret)
			fmt.Fprintln(env.Stderr, env.text("cli.service.token_created", "id", created.Token.ID, "until", when(created.Token.ExpiresAt)))
		})
	})
}

func serviceTokenRevoke(set *flag.FlagSet) func(*Env, []string) error {
	every := set.Bool("all", false, "cli.flag.service_all")
	return serviceVerb(set, 1, func(env *Env, client *api.Client, of api.ServiceAccount, args []string) error {
		request := api.ServiceRevokeRequest{All: *every}
		if len(args) > 0 {
			request.Token = args[0]
		}
		if request.All == (request.Token != "") {
			return usagef("cli.service.revoke_what")
		}
		if _, err := client.RevokeServiceTokens(env.Context, of, request); err != nil {
			return err
		}
		if request.All {
			fmt.Fprintln(env.Stdout, env.text("cli.service.revoked_all", "account", safe(of.Name)))
		} else {
			fmt.Fprintln(env.Stdout, env.text("cli.token.deleted", "id", safe(request.Token)))
		}
		return nil
	})
}

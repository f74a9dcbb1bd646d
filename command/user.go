package command

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

func userVerbs() []verb {
	return []verb{
		{path: "whoami", setup: whoami},
		{path: "usage", setup: selfUsage},
		{path: "user list", setup: userList},
		{path: "user status", args: "USER", setup: userStatus},
		{path: "user create", args: "USER", setup: userCreate},
		{path: "user update", args: "USER", setup: userUpdate},
		{path: "user disable", args: "USER", setup: userDisable},
		{path: "user enable", args: "USER", setup: userEnable},
		{path: "user delete", args: "USER", setup: userDelete},
		{path: "project member set", args: "PROJECT USER", setup: memberSet},
		{path: "project member remove", args: "PROJECT USER", setup: memberRemove},
	}
}

// whoami says who asks, in which project and as what.
func whoami(set *flag.FlagSet) func(*Env, []string) error {
	return reading("", func(env *Env, client *api.Client, _ string) (*api.Self, error) {
		return client.Self(env.Context)
	}, (*Env).printSelf)(set)
}

func (env *Env) printSelf(self *api.Self) {
	fields := newTable(env.Stdout, "", "")
	fields.row(env.text("cli.col.user"), safe(self.Name))
	if self.User != nil && self.User.DisplayName != "" {
		fields.row(env.text("cli.col.display_name"), safe(self.User.DisplayName))
	}
	if self.Service != nil && self.Service.Description != "" {
		fields.row(env.text("cli.col.description"), safe(self.Service.Description))
	}
	fields.row(env.text("cli.col.project"), safe(self.Project))
	fields.row(env.text("cli.col.role"), env.roleText(self.Role))
	if self.Cluster != "" && self.Cluster != self.Role {
		fields.row(env.text("cli.col.cluster_role"), env.roleText(self.Cluster))
	}
	if len(self.Memberships) > 0 {
		fields.row(env.text("cli.col.projects"), env.membershipsText(self.Memberships))
	}
	if self.Token.ExpiresAt != 0 {
		fields.row(env.text("cli.col.expires"), when(self.Token.ExpiresAt))
	}
	fields.print()
}

func (env *Env) roleText(role string) string {
	if role == "" {
		return "-"
	}
	return env.text("word.role." + role)
}

// membershipsText lists projects with the role in each: vision (user), speech (viewer).
func (env *Env) membershipsText(memberships []structs.Membership) string {
	texts := make([]string, len(memberships))
	for i, m := range memberships {
		texts[i] = fmt.Sprintf("%s (%s)", safe(m.Project), env.roleText(m.Role))
	}
	return strings.Join(texts, ", ")
}

func userList(set *flag.FlagSet) func(*Env, []string) error {
	return reading("", func(env *Env, client *api.Client, _ string) ([]api.UserDetail, error) {
		list, err := client.Users(env.Context)
		if err != nil {
			return nil, err
		}
		return all(list.Users), nil
	}, (*Env).printUsers)(set)
}

func (env *Env) printUsers(users []api.UserDetail) {
	if len(users) == 0 {
		fmt.Fprintln(env.Stdout, env.text("cli.user.list_empty"))
		return
	}
	table := newTable(env.Stdout, env.text("cli.col.user"), env.text("cli.col.display_name"), env.text("cli.col.state"),
		env.text("cli.col.cluster_role"), env.text("cli.col.projects"))
	for i := range users {
		u := &users[i]
		table.row(safe(u.User.Name), safe(u.User.DisplayName), env.userState(&u.User), env.roleText(u.User.ClusterRole()), env.membershipsText(u.Memberships))
	}
	table.print()
}

func (env *Env) userState(user *structs.User) string {
	if user.Disabled {
		return env.text("cli.user.disabled")
	}
	return env.text("cli.user.active")
}

func userStatus(set *flag.FlagSet) func(*Env, []string) error {
	return reading("USER", func(env *Env, client *api.Client, name string) (*api.UserDetail, error) {
		return client.User(env.Context, name)
	}, (*Env).printUser)(set)
}

func (env *Env) printUser(detail *api.UserDetail) {
	user := &detail.User
	fields := newTable(env.Stdout, "", "")
	row := func(id, value string) {
		if value != "" {
			fields.row(env.text(id), safe(value))
		}
	}
	row("cli.col.user", user.Name)
	row("cli.col.display_name", user.DisplayName)
	row("cli.col.email", user.Email)
	state := env.userState(user)
	if user.Disabled {
		state = env.text("cli.user.disabled_by", "by", user.DisabledBy, "at", when(user.DisabledAt))
	}
	row("cli.col.state", state)
	row("cli.col.cluster_role", env.roleText(user.ClusterRole()))
	for _, identity := range user.Identities {
		seen := "-"
		if identity.SeenAt != 0 {
			seen = when(identity.SeenAt)
		}
		row("cli.col.identity", env.text("cli.user.identity", "provider", identity.Provider, "subject", identity.Subject, "seen", seen))
	}
	row("cli.col.projects", env.membershipsText(detail.Memberships))
	row("cli.col.home_project", user.Project)
	row("cli.col.language", user.Language)
	fields.row(env.text("cli.col.live"), fmt.Sprint(detail.Live))
	for _, key := range user.SSHKeys {
		row("cli.col.ssh_key", key)
	}
	row("cli.col.created", when(user.CreatedAt))
	fields.print()
}

// userFlags are what an account says.
type userFlags struct {
	set    *flag.FlagSet
	user   structs.User
	keys   listFlag
	member listFlag
}

func declareUser(set *flag.FlagSet) *userFlags {
	f := &userFlags{set: set}
	set.StringVar(&f.user.DisplayName, "display-name", "", "cli.flag.display_name")
	set.StringVar(&f.user.Email, "email", "", "cli.flag.email")
	set.StringVar(&f.user.Language, "language", "", "cli.flag.user_language")
	set.StringVar(&f.user.Role, "role", "", "cli.flag.user_role")
	set.StringVar(&f.user.Project, "home", "", "cli.flag.home")
	set.Var(&f.keys, "ssh-key", "cli.flag.ssh_key")
	return f
}

// fill changes of a record what flags were given for.
func (f *userFlags) fill(user *structs.User) error {
	var failure error
	f.set.Visit(func(given *flag.Flag) {
		switch given.Name {
		case "display-name":
			user.DisplayName = f.user.DisplayName
		case "email":
			user.Email = f.user.Email
		case "language":
			user.Language = f.user.Language
		case "role":
			user.Role = f.user.Role
		case "home":
			user.Project = f.user.Project
		case "ssh-key":
			user.SSHKeys, failure = readKeys(f.keys)
		}
	})
	return failure
}

// readKeys reads public keys, one a line, as in authorized_keys. A name of "none"
// stands for no keys.
func readKeys(files []string) (keys []string, err error) {
	for _, file := range files {
		if file == "none" {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, structs.NewError(structs.CodeInvalid, "cli.file_unreadable", "path", file, "problem", rootCause(err))
		}
		if strings.Contains(string(data), "PRIVATE KEY") {
			return nil, structs.NewError(structs.CodeInvalid, "cli.user.private_key", "path", file)
		}
		for line := range strings.Lines(string(data)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				keys = append(keys, line)
			}
		}
	}
	return keys, nil
}

func userCreate(set *flag.FlagSet) func(*Env, []string) error {
	connection, flags := declareConnection(set), declareUser(set)
	set.Var(&flags.member, "member", "cli.flag.member")
	return func(env *Env, args []string) error {
		name, err := one(args, "USER")
		if err != nil {
			return err
		}
		if id := structs.UserNameProblem(name); id != "" {
			return structs.NewError(structs.CodeInvalid, id, "name", name, "max", structs.UserNameLengthMax)
		}
		user := structs.User{Name: name}
		if err := flags.fill(&user); err != nil {
			return err
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		switch _, err := client.User(env.Context, name); {
		case err == nil:
			return structs.NewError(structs.CodeConflict, "cli.user.exists", "user", name)
		case structs.CodeOf(err) != structs.CodeNotFound:
			return err
		}
		if _, err := client.PutUser(env.Context, &user); err != nil {
			return err
		}
		for _, of := range flags.member {
			project, role, found := strings.Cut(of, ":")
			if !found {
				role = structs.RoleUser
			}
			if _, err := client.SetMember(env.Context, project, api.MemberRequest{User: name, Role: role}); err != nil {
				return err
			}
		}
		fmt.Fprintln(env.Stdout, env.text("cli.user.created", "user", safe(name)))
		return nil
	}
}

func userUpdate(set *flag.FlagSet) func(*Env, []string) error {
	connection, flags := declareConnection(set), declareUser(set)
	var identities listFlag
	set.Var(&identities, "identity", "cli.flag.identity")
	return func(env *Env, args []string) error {
		name, err := one(args, "USER")
		if err != nil {
			return err
		}
		links := make([]api.IdentityRequest, len(identities))
		for i, text := range identities {
			provider, subject, found := strings.Cut(text, ":")
			if !found || provider == "" {
				return usagef("cli.user.bad_identity", "value", safe(text))
			}
			links[i] = api.IdentityRequest{Provider: provider, Subject: subject}
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		for _, link := range links {
			if _, err := client.SetIdentity(env.Context, name, link); err != nil {
				return err
			}
		}
		known, err := client.User(env.Context, name)
		if err != nil {
			return err
		}
		if err := flags.fill(&known.User); err != nil {
			return err
		}
		if _, err := client.PutUser(env.Context, &known.User); err != nil {
			return err
		}
		fmt.Fprintln(env.Stdout, env.text("cli.user.updated", "user", safe(name)))
		return nil
	}
}

// userDisable disables an account. What becomes of its jobs is asked for where it has
// any: none of the three is right for everybody.
func userDisable(set *flag.FlagSet) func(*Env, []string) error {
	connection := declareConnection(set)
	jobs := set.String("jobs", "", "cli.flag.user_jobs")
	to := set.String("to", "", "cli.flag.user_to")
	return func(env *Env, args []string) error {
		name, err := one(args, "USER")
		if err != nil {
			return err
		}
		state := api.UserStateRequest{Disabled: true, To: *to}
		if state.Jobs, err = whatBecomes(*jobs, *to); err != nil {
			return err
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		user, err := client.User(env.Context, name)
		if err != nil {
			return err
		}
		if user.Live > 0 && state.Jobs == "" {
			return structs.NewError(structs.CodeConflict, "cli.user.jobs", "user", name, "count", user.Live)
		}
		if _, err := client.SetUserState(env.Context, name, state); err != nil {
			return err
		}
		fmt.Fprintln(env.Stdout, env.text("cli.user.disable_done", "user", safe(name)))
		return nil
	}
}

// whatBecomes reads what becomes of the live jobs of an account, "" where nothing was
// said; whoever is named to get them gets them.
func whatBecomes(jobs, to string) (string, error) {
	switch jobs {
	case "":
		if to != "" {
			return structs.JobsHandOver, nil
		}
		return "", nil
	case "run-on":
		return structs.JobsRunOn, nil
	case "stop":
		return structs.JobsStop, nil
	case "hand-over":
		return structs.JobsHandOver, nil
	}
	return "", usagef("cli.user.bad_jobs", "value", safe(jobs))
}

func userEnable(set *flag.FlagSet) func(*Env, []string) error {
	return deleting("USER", "cli.user.enable_done", func(env *Env, client *api.Client, name string) error {
		_, err := client.SetUserState(env.Context, name, api.UserStateRequest{})
		return err
	})(set)
}

func userDelete(set *flag.FlagSet) func(*Env, []string) error {
	return deleting("USER", "cli.user.deleted", func(env *Env, client *api.Client, name string) error {
		_, err := client.DeleteUser(env.Context, name)
		return err
	})(set)
}

func memberSet(set *flag.FlagSet) func(*Env, []string) error {
	connection := declareConnection(set)
	role := set.String("role", structs.RoleUser, "cli.flag.member_role")
	return func(env *Env, args []string) error {
		client, err := env.openTwo(connection, args, "PROJECT USER")
		if err != nil {
			return err
		}
		defer client.Close()
		if _, err := client.SetMember(env.Context, args[0], api.MemberRequest{User: args[1], Role: *role}); err != nil {
			return err
		}
		fmt.Fprintln(env.Stdout, env.text("cli.member.set", "user", safe(args[1]), "project", safe(args[0]), "role", env.roleText(*role)))
		return nil
	}
}

func memberRemove(set *flag.FlagSet) func(*Env, []string) error {
	connection := declareConnection(set)
	return func(env *Env, args []string) error {
		client, err := env.openTwo(connection, args, "PROJECT USER")
		if err != nil {
			return err
		}
		defer client.Close()
		if _, err := client.SetMember(env.Context, args[0], api.MemberRequest{User: args[1]}); err != nil {
			return err
		}
		fmt.Fprintln(env.Stdout, env.text("cli.member.removed", "user", safe(args[1]), "project", safe(args[0])))
		return nil
	}
}

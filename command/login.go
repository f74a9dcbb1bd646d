package command

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

func loginVerbs() []verb {
	return []verb{
		{path: "login", args: "[TOKEN]", setup: login},
		{path: "logout", setup: logout},
		{path: "user password", args: "[USER]", setup: userPassword},
	}
}

// extendWithin is how long before its end a token by signing in is put off: a command
// a day does that once a day.
const extendWithin = 6 * 24 * time.Hour

// login pins the cluster's CA and remembers address and token.
func login(set *flag.FlagSet) func(*Env, []string) error {
	connection := declareConnection(set)
	fingerprint := set.String("ca-fingerprint", "", "cli.flag.ca_fingerprint")
	user := set.String("user", "", "cli.flag.login_user")
	provider := set.String("provider", "", "cli.flag.login_provider")
	providers := set.Bool("providers", false, "cli.flag.login_providers")
	passwords, ways := declarePasswords(set), declareProviderFlags(set)
	return func(env *Env, args []string) error {
		switch {
		case len(args) > 1:
			return none(args[1:])
		case *user+*provider != "" && len(args) > 0:
			return structs.NewError(structs.CodeInvalid, "cli.login.both")
		case ways.given() && (*provider == "" || *user != ""):
			return structs.NewError(structs.CodeInvalid, "cli.login.no_provider")
		case *user == "" && passwords.given():
			return structs.NewError(structs.CodeInvalid, "cli.login.no_user")
		case *provider != "" && *passwords.newFile != "":
			return structs.NewError(structs.CodeInvalid, "auth.provider_new_password", "provider", *provider)
		}
		remembered, err := env.loadContext()
		if err != nil {
			return err
		}
		if err := env.reach(&remembered, connection, *fingerprint); err != nil {
			return err
		}
		if *providers {
			return env.printProviders(&remembered)
		}
		remembered.Project = *connection.project // that of whoever signed in before is not theirs
		if *user != "" {
			if remembered.Token, err = env.signIn(&remembered, *provider, *user, passwords); err != nil {
				return err
			}
		} else if *provider != "" {
			if remembered.Token, err = env.signInThrough(&remembered, *provider, ways); err != nil {
				return err
			}
		} else if remembered.Token, err = env.tokenFor(connection, args, remembered.Token); err != nil {
			return err
		}
		client, err := env.remembering(&remembered)
		if err != nil {
			return err
		}
		defer client.Close()
		token, err := client.SelfToken(env.Context)
		if err != nil {
			return err
		}
		remembered.ExtendAt = extendAt(token)
		dir, err := env.saveContext(remembered)
		if err != nil {
			return err
		}
		fmt.Fprintln(env.Stdout, env.text("cli.login.done", "role", token.Role, "user", safe(firstOf(token.User, token.Name, "-")), "dir", dir))
		return nil
	}
}

// reach finds out where the cluster is, and by which CA its servers are known.
func (env *Env) reach(remembered *api.Context, connection connectionFlags, fingerprint string) error {
	remembered.Address = firstOf(*connection.address, env.Getenv("NOMADLIKE_ADDR"), remembered.Address, api.DefaultAddress)
	pem, err := env.caFile(connection)
	if err != nil {
		return err
	}
	if pem == nil && fingerprint != "" {
		first, _, _ := strings.Cut(remembered.Address, ",")
		if pem, err = api.FetchCA(env.Context, first, fingerprint); err != nil {
			return err
		}
	}
	if pem != nil {
		remembered.CA = string(pem)
	}
	if remembered.CA == "" {
		return structs.NewError(structs.CodeInvalid, "cli.no_ca")
	}
	return nil
}

// remembering is a client of what is remembered.
func (env *Env) remembering(remembered *api.Context) (*api.Client, error) {
	return api.New(api.Config{Address: remembered.Address, CAPEM: []byte(remembered.CA), Token: remembered.Token, Language: string(env.Language), Project: remembered.Project})
}

// printProviders lists what one may sign in through, which needs no token.
func (env *Env) printProviders(remembered *api.Context) error {
	stranger := *remembered
	stranger.Token = ""
	client, err := env.remembering(&stranger)
	if err != nil {
		return err
	}
	defer client.Close()
	list, err := client.LoginProviders(env.Context)
	if err != nil {
		return err
	}
	if len(list.Providers) == 0 {
		fmt.Fprintln(env.Stdout, env.text("cli.login.providers_empty"))
		return nil
	}
	table := newTable(env.Stdout, env.text("cli.col.provider"), env.text("cli.col.kind"), env.text("cli.col.caption"))
	for _, p := range list.Providers {
		table.row(safe(p.Name), safe(p.Kind), safe(p.Caption))
	}
	table.print()
	return nil
}

// signIn returns the secret of a token that a password makes: of an account, or of a
// provider where one is named.
func (env *Env) signIn(remembered *api.Context, provider, user string, passwords *passwordFlags) (string, error) {
	stranger := *remembered
	stranger.Token = ""
	client, err := env.remembering(&stranger)
	if err != nil {
		return "", err
	}
	defer client.Close()
	prompt := "cli.login.password_prompt"
	if provider != "" {
		prompt = "cli.login.provider_prompt"
	}
	password, err := passwords.read(env, *passwords.file, prompt, "user", safe(user), "provider", safe(provider))
	if err != nil {
		return "", err
	}
	made, err := client.Login(env.Context, api.LoginRequest{User: user, Password: password, Provider: provider})
	var refused *structs.Error
	if errors.As(err, &refused) && refused.ID == "auth.password_first" && (*passwords.newFile != "" || env.terminal() != nil) {
		fmt.Fprintln(env.Stderr, env.text("cli.login.first", "min", structs.PasswordLengthMin))
		var chosen string
		if chosen, err = passwords.choose(env); err != nil {
			return "", err
		}
		made, err = client.Login(env.Context, api.LoginRequest{User: user, Password: password, NewPassword: chosen})
	}
	if err != nil {
		return "", err
	}
	return made.Secret, nil
}

func extendAt(token *structs.Token) structs.UnixNano {
	if token.Method == "" || token.ExpiresAt >= token.EndsAt {
		return 0
	}
	return token.ExpiresAt.Add(-extendWithin)
}

// extend puts off the end of the remembered token, when that is due. A command does not
// fail because of it: the token is good for days still.
func (env *Env) extend(client *api.Client, remembered api.Context) {
	if remembered.ExtendAt == 0 || structs.At(time.Now()) < remembered.ExtendAt {
		return
	}
	token, err := client.ExtendToken(env.Context)
	if err != nil {
		return
	}
	now, err := env.loadContext()
	if err != nil || now.Token != remembered.Token { // somebody signed in meanwhile
		return
	}
	now.ExtendAt = extendAt(token)
	if _, err := env.saveContext(now); err != nil {
		fmt.Fprintln(env.Stderr, env.text("cli.ca_not_kept", "problem", rootCause(err)))
	}
}

// logout revokes the token that a sign-in made, and forgets what is remembered of it.
func logout(set *flag.FlagSet) func(*Env, []string) error {
	connection := declareConnection(set)
	return func(env *Env, args []string) error {
		if err := none(args); err != nil {
			return err
		}
		remembered, err := env.loadContext()
		if err != nil {
			return err
		}
		if remembered.Token == "" {
			return structs.NewError(structs.CodeInvalid, "cli.logout.nobody")
		}
		if err := env.reach(&remembered, connection, ""); err != nil {
			return err
		}
		client, err := env.remembering(&remembered)
		if err != nil {
			return err
		}
		defer client.Close()
		return env.signOut(client, remembered)
	}
}

// signOut revokes the token of a client that a sign-in made, and forgets what is remembered.
func (env *Env) signOut(client *api.Client, remembered api.Context) error {
	revoked, there := false, ""
	token, err := client.SelfToken(env.Context)
	switch {
	case structs.CodeOf(err) == structs.CodeUnauthorized: // it is over already
	case err != nil:
		return err
	case token.Method != "": // one that somebody made may be in use elsewhere
		deleted, err := client.DeleteToken(env.Context, token.ID)
		if err != nil {
			return err
		}
		revoked, there = true, deleted.Address
	}
	remembered.Token, remembered.Project, remembered.ExtendAt = "", "", 0
	if _, err := env.saveContext(remembered); err != nil {
		return err
	}
	if revoked {
		fmt.Fprintln(env.Stdout, env.text("cli.logout.done"))
	} else {
		fmt.Fprintln(env.Stdout, env.text("cli.logout.forgotten"))
	}
	if strings.HasPrefix(there, "https://") {
		fmt.Fprintln(env.Stdout, env.text("cli.logout.there", "address", safe(there)))
	}
	return nil
}

// passwordFlags say where passwords come from. None is an argument: those stand in the
// list of processes and in the shell's history.
type passwordFlags struct {
	file, newFile *string
}

func declarePasswords(set *flag.FlagSet) *passwordFlags {
	return &passwordFlags{
		file:    set.String("password-file", "", "cli.flag.password_file"),
		newFile: set.String("new-password-file", "", "cli.flag.new_password_file"),
	}
}

func (f *passwordFlags) given() bool { return *f.file != "" || *f.newFile != "" }

// read reads a password from a file, "-" for the first line of standard input, or asks
// for it on the terminal.
func (f *passwordFlags) read(env *Env, file, prompt string, args ...any) (string, error) {
	switch file {
	case "":
	case "-":
		line, err := io.ReadAll(io.LimitReader(env.Stdin, tokenLineMax))
		if err != nil {
			return "", fmt.Errorf("read password: %w", err)
		}
		return strings.TrimRight(string(line), "\r\n"), nil
	default:
		data, err := os.ReadFile(file)
		if err != nil {
			return "", structs.NewError(structs.CodeInvalid, "cli.password_unreadable", "path", file, "problem", rootCause(err))
		}
		return strings.TrimRight(string(data), "\r\n"), nil
	}
	terminal := env.terminal()
	if terminal == nil {
		return "", structs.NewError(structs.CodeInvalid, "cli.password_nowhere")
	}
	fmt.Fprint(env.Stderr, env.text(prompt, args...))
	typed, err := term.ReadPassword(int(terminal.Fd()))
	fmt.Fprintln(env.Stderr)
	if err != nil {
		return "", fmt.Errorf("read password: %w", err)
	}
	return string(typed), nil
}

// choose reads a new password, twice where a person types it.
func (f *passwordFlags) choose(env *Env) (string, error) {
	chosen, err := f.read(env, *f.newFile, "cli.password.new_prompt")
	if err != nil || *f.newFile != "" {
		return chosen, err
	}
	again, err := f.read(env, "", "cli.password.again_prompt")
	if err != nil {
		return "", err
	}
	if again != chosen {
		return "", structs.NewError(structs.CodeInvalid, "cli.password_differs")
	}
	return chosen, nil
}

// terminal is standard input where a person sits before it, else nil.
func (env *Env) terminal() *os.File {
	if file, ok := env.Stdin.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return file
	}
	return nil
}

// userPassword makes one's own password another, or has one drawn for somebody else.
func userPassword(set *flag.FlagSet) func(*Env, []string) error {
	connection, output := declareConnection(set), declareOutput(set)
	passwords := declarePasswords(set)
	reset := set.Bool("reset", false, "cli.flag.password_reset")
	forget := set.Bool("forget", false, "cli.flag.password_forget")
	return func(env *Env, args []string) error {
		if len(args) > 1 {
			return none(args[1:])
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		self, err := client.Self(env.Context)
		if err != nil {
			return err
		}
		user := self.Name
		if len(args) == 1 {
			user = args[0]
		}
		request := api.PasswordRequest{Reset: *reset, Forget: *forget}
		if !*reset && !*forget {
			if user != self.Name {
				return structs.NewError(structs.CodeInvalid, "cli.password_of_another", "user", user)
			}
			if request.Current, err = passwords.read(env, *passwords.file, "cli.password.current_prompt"); err != nil {
				return err
			}
			if request.Password, err = passwords.choose(env); err != nil {
				return err
			}
		}
		changed, err := client.SetPassword(env.Context, user, request)
		if err != nil {
			return err
		}
		return env.show(output, changed, func() {
			switch {
			case changed.First != "":
				fmt.Fprintln(env.Stdout, changed.First)
				fmt.Fprintln(env.Stderr, env.text("cli.password.drawn", "user", safe(user), "until", when(changed.Until)))
			case *forget:
				fmt.Fprintln(env.Stdout, env.text("cli.password.forgotten", "user", safe(user)))
			default:
				fmt.Fprintln(env.Stdout, env.text("cli.password.changed", "user", safe(user)))
			}
		})
	}
}

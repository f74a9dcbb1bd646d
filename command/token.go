package command

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

func tokenVerbs() []verb {
	return []verb{
		{path: "token bootstrap", args: "[SECRET]", setup: tokenBootstrap},
		{path: "token create", setup: tokenCreate},
		{path: "token list", setup: tokenList},
		{path: "token self", setup: tokenSelf},
		{path: "token delete", args: "TOKEN", setup: tokenDelete},
		{path: "token join create", setup: joinTokenCreate},
		{path: "token join list", setup: joinTokenList},
		{path: "token join delete", args: "TOKEN", setup: joinTokenDelete},
	}
}

// tokenFor is the token to sign in with: the argument, where "-" reads it from
// standard input so that it stands in no history and no process list; then
// flag and environment; then what a person types; then the remembered one.
func (env *Env) tokenFor(connection connectionFlags, args []string, remembered string) (string, error) {
	if len(args) == 1 && args[0] == "-" {
		line, err := io.ReadAll(io.LimitReader(env.Stdin, tokenLineMax))
		if err != nil {
			return "", fmt.Errorf("read token: %w", err)
		}
		return strings.TrimSpace(string(line)), nil
	}
	if token := firstOf(append(args, *connection.token, env.Getenv("NOMADLIKE_TOKEN"))...); token != "" {
		return token, nil
	}
	if file, ok := env.Stdin.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		fmt.Fprint(env.Stderr, env.text("cli.login.prompt"))
		typed, err := term.ReadPassword(int(file.Fd()))
		fmt.Fprintln(env.Stderr)
		if err != nil {
			return "", fmt.Errorf("read token: %w", err)
		}
		if len(typed) > 0 {
			return strings.TrimSpace(string(typed)), nil
		}
	}
	return remembered, nil
}

const tokenLineMax = 4 << 10 // bytes

func (env *Env) saveContext(remembered api.Context) (string, error) {
	dir, err := api.ContextDir(env.Getenv)
	if err != nil {
		return "", err
	}
	return dir, api.SaveContext(dir, remembered)
}

// tokenBootstrap makes the first management token and remembers it.
func tokenBootstrap(set *flag.FlagSet) func(*Env, []string) error {
	connection, output := declareConnection(set), declareOutput(set)
	file := set.String("setup-file", "", "cli.flag.secret_file")
	return func(env *Env, args []string) error {
		secret, err := setupSecret(*file, args)
		if err != nil {
			return err
		}
		remembered, err := env.loadContext()
		if err != nil {
			return err
		}
		pem, err := env.caFile(connection)
		switch {
		case err != nil:
			return err
		case pem != nil:
			remembered.CA = string(pem)
		case *file != "": // the first server's data directory holds both
			if pem, err := os.ReadFile(filepath.Join(filepath.Dir(*file), "identity", "ca.pem")); err == nil {
				remembered.CA = string(pem)
			}
		}
		if remembered.CA == "" {
			return structs.NewError(structs.CodeInvalid, "cli.no_ca")
		}
		remembered.Address = firstOf(*connection.address, env.Getenv("NOMADLIKE_ADDR"), remembered.Address, api.DefaultAddress)
		client, err := api.New(api.Config{Address: remembered.Address, CAPEM: []byte(remembered.CA), Language: string(env.Language)})
		if err != nil {
			return err
		}
		defer client.Close()
		created, err := client.BootstrapToken(env.Context, secret)
		if err != nil {
			return err
		}
		// Shown before it is remembered: it is given this once.
		showing := env.show(output, created, func() { fmt.Fprintln(env.Stdout, created.Secret) })
		remembered.Token = created.Secret
		dir, err := env.saveContext(remembered)
		if err != nil || showing != nil {
			return errors.Join(showing, err)
		}
		fmt.Fprintln(env.Stderr, env.text("cli.token.bootstrapped", "dir", dir))
		return nil
	}
}

// setupSecret is the one-time secret, from its file or the argument.
func setupSecret(file string, args []string) (string, error) {
	if file == "" {
		return one(args, "SECRET")
	}
	if err := none(args); err != nil {
		return "", err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", structs.NewError(structs.CodeInvalid, "cli.file_unreadable", "path", file, "problem", rootCause(err))
	}
	return strings.TrimSpace(string(data)), nil
}

func tokenCreate(set *flag.FlagSet) func(*Env, []string) error {
	connection, output := declareConnection(set), declareOutput(set)
	request := api.TokenRequest{}
	set.StringVar(&request.Name, "name", "", "cli.flag.token_name")
	set.StringVar(&request.Role, "role", "user", "cli.flag.token_role")
	connection.means(set, "cli.flag.token_project")
	set.StringVar(&request.User, "user", "", "cli.flag.token_user")
	ttl := declareSpan(set, "ttl", 0, "cli.flag.ttl")
	var verbs, addresses listFlag
	set.Var(&verbs, "verb", "cli.flag.token_verb")
	set.Var(&addresses, "from", "cli.flag.token_from")
	return func(env *Env, args []string) error {
		if err := none(args); err != nil {
			return err
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		request.TTL, request.Project, request.Verbs, request.Addresses = ttl.value, *connection.project, verbs, addresses
		created, err := client.CreateToken(env.Context, request)
		if err != nil {
			return err
		}
		return env.show(output, created, func() {
			fmt.Fprintln(env.Stdout, created.Secret)
			fmt.Fprintln(env.Stderr, env.text("cli.token.created", "id", created.Token.ID))
		})
	}
}

func tokenList(set *flag.FlagSet) func(*Env, []string) error {
	return reading("", func(env *Env, client *api.Client, _ string) ([]structs.Token, error) {
		return everyPage(&api.Query{}, func(query *api.Query) ([]structs.Token, string, error) {
			page, _, err := client.Tokens(env.Context, query)
			if err != nil {
				return nil, "", err
			}
			return page.Tokens, page.Next, nil
		})
	}, (*Env).printTokens)(set)
}

func (env *Env) printTokens(tokens []structs.Token) {
	columns := []string{
		"ID", env.text("cli.col.name"), env.text("cli.col.role"), env.text("cli.col.project"),
		env.text("cli.col.user"), env.text("cli.col.created"), env.text("cli.col.expires"),
	}
	limits := func(token structs.Token) string {
		return strings.Join(slices.Concat(token.Verbs, token.Addresses), ", ")
	}
	limited := slices.ContainsFunc(tokens, func(token structs.Token) bool { return limits(token) != "" })
	if limited {
		columns = append(columns, env.text("cli.col.good_for"))
	}
	table := newTable(env.Stdout, columns...)
	for _, token := range tokens {
		cells := []string{token.ID, safe(token.Name), token.Role, safe(token.Project), safe(token.User), when(token.CreatedAt), when(token.ExpiresAt)}
		if limited {
			cells = append(cells, safe(limits(token)))
		}
		table.row(cells...)
	}
	table.print()
}

func tokenSelf(set *flag.FlagSet) func(*Env, []string) error {
	return reading("", func(env *Env, client *api.Client, _ string) (*structs.Token, error) {
		return client.SelfToken(env.Context)
	}, func(env *Env, token *structs.Token) { env.printTokens([]structs.Token{*token}) })(set)
}

func tokenDelete(set *flag.FlagSet) func(*Env, []string) error {
	return deletion(set, "TOKEN", "cli.token.deleted", (*api.Client).DeleteToken)
}

func joinTokenDelete(set *flag.FlagSet) func(*Env, []string) error {
	return deletion(set, "TOKEN", "cli.token.deleted", (*api.Client).DeleteJoinToken)
}

func joinTokenCreate(set *flag.FlagSet) func(*Env, []string) error {
	connection, output := declareConnection(set), declareOutput(set)
	role := set.String("role", "client", "cli.flag.join_role")
	uses := set.Int("uses", 1, "cli.flag.uses")
	ttl := declareSpan(set, "ttl", time.Hour, "cli.flag.ttl")
	return func(env *Env, args []string) error {
		if err := none(args); err != nil {
			return err
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		created, err := client.CreateJoinToken(env.Context, api.JoinTokenRequest{Role: *role, Uses: *uses, TTL: ttl.value})
		if err != nil {
			return err
		}
		return env.show(output, created, func() { fmt.Fprintln(env.Stdout, created.Join) })
	}
}

func joinTokenList(set *flag.FlagSet) func(*Env, []string) error {
	return reading("", func(env *Env, client *api.Client, _ string) ([]structs.JoinToken, error) {
		list, err := client.JoinTokens(env.Context)
		if err != nil {
			return nil, err
		}
		return all(list.Tokens), nil
	}, func(env *Env, tokens []structs.JoinToken) {
		table := newTable(env.Stdout, "ID", env.text("cli.col.role"), env.text("cli.col.uses"), env.text("cli.col.created"), env.text("cli.col.expires"))
		for _, token := range tokens {
			uses := strconv.Itoa(token.UsesLeft)
			if token.UsesLeft < 0 {
				uses = "∞"
			}
			table.row(token.ID, token.Role, uses, when(token.CreatedAt), when(token.ExpiresAt))
		}
		table.print()
	})(set)
}

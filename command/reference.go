package command

import (
	"flag"
	"fmt"
	"strings"

	"nomadlike/internal/messages"
	"nomadlike/jobspec"
)

// reference is the reference page of the command line.
func reference(language messages.Language) string {
	env := &Env{Language: language}
	say := func(id string, params ...any) string { return env.text("cli.reference."+id, params...) }
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n\n", say("title"), say("intro"))

	fmt.Fprintf(&b, "## %s\n\n| %s | %s |\n|---|---|\n", say("environment"), say("variable"), say("meaning"))
	for _, name := range []string{
		"NOMADLIKE_ADDR", "NOMADLIKE_TOKEN", "NOMADLIKE_CACERT", "NOMADLIKE_CONFIG_DIR", "NOMADLIKE_LANG", "NOMADLIKE_VAR_x", "NO_COLOR",
	} {
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, say("env."+strings.ToLower(name)))
	}
	fmt.Fprintf(&b, "\n## %s\n\n| %s | %s |\n|---|---|\n", say("exit_codes"), say("code"), say("meaning"))
	for _, code := range []string{"0", "1", "2", "124", "130"} {
		fmt.Fprintf(&b, "| %s | %s |\n", code, say("exit."+code))
	}
	fmt.Fprintf(&b, "| %s | %s |\n", say("exit_other"), say("exit.other"))

	fmt.Fprintf(&b, "\n## %s\n\n%s\n", say("common"), say("common_text"))
	fmt.Fprintf(&b, "\n| %s | %s |\n|---|---|\n", say("flag"), say("meaning"))
	common := commonFlags()
	for _, f := range common {
		fmt.Fprintf(&b, "| `%s` | %s |\n", f.written(), cell(f.explained(env)))
	}

	fmt.Fprintf(&b, "\n## %s\n", say("commands"))
	for _, v := range matching("") {
		fmt.Fprintf(&b, "\n### %s\n\n```\n%s\n```\n\n%s\n", v.path, usage(v), sentence(env.text("cli."+key(v.path)), language))
		var rows, shared []string
		for _, f := range flagsOf(v) {
			if isCommon(common, f) {
				shared = append(shared, "`-"+f.Name+"`")
				continue
			}
			rows = append(rows, fmt.Sprintf("| `%s` | %s |", f.written(), cell(f.explained(env))))
		}
		if len(rows) > 0 {
			fmt.Fprintf(&b, "\n| %s | %s |\n|---|---|\n%s\n", say("flag"), say("meaning"), strings.Join(rows, "\n"))
		}
		if len(shared) > 0 {
			fmt.Fprintf(&b, "\n%s\n", say("also", "flags", strings.Join(shared, " ")))
		}
	}
	return b.String()
}

// cliReference prints the page, for the website.
func cliReference(_ *flag.FlagSet) func(*Env, []string) error {
	return func(env *Env, args []string) error {
		if err := none(args); err != nil {
			return err
		}
		fmt.Fprint(env.Stdout, reference(env.Language))
		return nil
	}
}

// fileReference prints the page about a kind of file.
func fileReference(_ *flag.FlagSet) func(*Env, []string) error {
	return func(env *Env, args []string) error {
		kind, err := one(args, "job|pool|project|agent")
		if err != nil {
			return err
		}
		page, err := pageAbout(kind, env.Language)
		if err != nil {
			return err
		}
		fmt.Fprint(env.Stdout, page)
		return nil
	}
}

// pageAbout is the page about a kind of file.
func pageAbout(kind string, language messages.Language) (string, error) {
	if kind == "agent" {
		return agentReference(language)
	}
	return jobspec.Reference(kind, language)
}

// commonFlags are those of nearly every verb, told once.
func commonFlags() []verbFlag {
	return flagsOf(verb{setup: serverMembers}) // a verb with these and no others
}

func isCommon(common []verbFlag, f verbFlag) bool {
	for _, one := range common {
		if one.Name == f.Name && one.Usage == f.Usage {
			return true
		}
	}
	return false
}

// cell makes text fit into a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", "\\|") }

// sentence returns a summary with a capital letter and a full stop.
func sentence(text string, language messages.Language) string {
	if language == messages.Chinese {
		return text + "。"
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

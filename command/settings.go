package command

import (
	"flag"
	"fmt"
	"strings"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

func settingsVerbs() []verb {
	return []verb{
		{path: "operator ceilings", setup: operatorCeilings},
		{path: "operator sharing", args: "[on|off]", setup: operatorSharing},
		{path: "operator service-tokens", args: "[SPAN]", setup: operatorServiceTokens},
	}
}

// operatorCeilings shows the most that jobs may ask for in the whole cluster, or changes
// those of which a flag is given.
func operatorCeilings(set *flag.FlagSet) func(*Env, []string) error {
	connection, output := declareConnection(set), declareOutput(set)
	pool := set.String("pool", "", "cli.flag.ceilings_pool")
	spans := map[string]*string{
		"time-limit": set.String("time-limit", "", "cli.flag.ceiling_time_limit"),
		"grace":      set.String("grace", "", "cli.flag.ceiling_grace"),
		"hold":       set.String("hold", "", "cli.flag.ceiling_hold"),
	}
	numbers := map[string]*int{
		"nodes":       set.Int("nodes", 0, "cli.flag.ceiling_nodes"),
		"devices":     set.Int("devices", 0, "cli.flag.ceiling_devices"),
		"max-resumes": set.Int("max-resumes", 0, "cli.flag.ceiling_resumes"),
	}
	never := set.Bool("no-checkpoint", false, "cli.flag.ceiling_no_checkpoint")
	return func(env *Env, args []string) error {
		if err := none(args); err != nil {
			return err
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		known, err := client.Settings(env.Context, *pool)
		if err != nil {
			return err
		}
		next, changes := known.Settings.Ceilings, false
		places := map[string]any{
			"time-limit": &next.TimeLimit, "grace": &next.Grace, "hold": &next.Hold,
			"nodes": &next.Nodes, "devices": &next.Devices, "max-resumes": &next.MaxResumes, "no-checkpoint": &next.NoCheckpoint,
		}
		var wrong error
		set.Visit(func(given *flag.Flag) {
			switch place := places[given.Name].(type) {
			case *structs.Duration:
				span, err := spanOrNone(*spans[given.Name])
				if err != nil {
					wrong = usagef("cli.bad_span", "flag", "-"+given.Name, "value", safe(*spans[given.Name]))
				}
				*place, changes = span, true
			case *int:
				*place, changes = *numbers[given.Name], true
			case *bool:
				*place, changes = *never, true
			}
		})
		if wrong != nil {
			return wrong
		}
		if changes {
			if _, err := client.PutSettings(env.Context, api.SettingsRequest{Ceilings: &next}); err != nil {
				return err
			}
			if known, err = client.Settings(env.Context, *pool); err != nil {
				return err
			}
		}
		return env.show(output, known, func() { env.printSettings(known) })
	}
}

// spanOrNone reads how long something may take; "none" and 0 are no bound.
func spanOrNone(text string) (structs.Duration, error) {
	if text == "none" || text == "0" {
		return 0, nil
	}
	return structs.ParseDuration(text)
}

// printSettings shows what is set for the whole cluster, and what comes of it for one's
// own jobs.
func (env *Env) printSettings(known *api.SettingsAnswer) {
	fields := newTable(env.Stdout, "", "")
	row := func(id, value string) {
		if value != "" {
			fields.row(env.text(id), value)
		}
	}
	of := &known.Settings
	sharing := env.text("cli.sharing.on")
	if of.NoSharing {
		sharing = env.text("cli.sharing.off", "by", safe(of.SharingBy), "at", when(of.SharingAt))
	}
	row("cli.col.sharing", sharing)
	row("cli.col.service_tokens", "≤ "+structs.FormatDuration(structs.Duration(of.ServiceTokenMax())))
	env.ceilingsRows(row, &of.Ceilings)
	if of.CeilingsBy != "" {
		row("cli.col.bounds_set", fmt.Sprintf("%s, %s", when(of.CeilingsAt), safe(of.CeilingsBy)))
	}
	fields.print()
	env.printCeilings("cli.ceilings.effective", known.Effective)
}

// printCeilings lists the most that jobs may ask for, with whose word that is.
func (env *Env) printCeilings(heading string, ceilings []structs.Ceiling, params ...any) {
	if len(ceilings) == 0 {
		return
	}
	fmt.Fprintf(env.Stdout, "\n%s\n", env.Stdout.paint(colourBold, env.text(heading, params...)))
	for _, c := range ceilings {
		fmt.Fprintf(env.Stdout, "  %s\n", env.ceilingText(&c))
	}
}

func (env *Env) ceilingText(c *structs.Ceiling) string {
	whose := env.text("cli.ceilings."+string(c.Level), "name", safe(c.Name))
	if c.By != "" {
		whose = strings.Join([]string{whose, safe(c.By), when(c.At)}, ", ")
	}
	return fmt.Sprintf("%s ≤ %s  (%s)", c.Path, c.Max, whose)
}

// operatorSharing shows whether owners may share their jobs with their projects, or
// switches that.
func operatorSharing(set *flag.FlagSet) func(*Env, []string) error {
	connection, output := declareConnection(set), declareOutput(set)
	return func(env *Env, args []string) error {
		word, err := atMostOne(args)
		if err != nil {
			return err
		}
		if word != "" && word != "on" && word != "off" {
			return usagef("cli.sharing.word", "value", safe(word))
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		if word != "" {
			off := word == "off"
			if _, err := client.PutSettings(env.Context, api.SettingsRequest{NoSharing: &off}); err != nil {
				return err
			}
		}
		known, err := client.Settings(env.Context, "")
		if err != nil {
			return err
		}
		return env.show(output, known, func() { env.printSettings(known) })
	}
}

// operatorServiceTokens shows how long new tokens of service accounts live at most, or
// changes that.
func operatorServiceTokens(set *flag.FlagSet) func(*Env, []string) error {
	connection, output := declareConnection(set), declareOutput(set)
	return func(env *Env, args []string) error {
		word, err := atMostOne(args)
		if err != nil {
			return err
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		if word != "" {
			most, err := spanOrNone(word)
			if err != nil {
				return usagef("cli.bad_span", "flag", "SPAN", "value", safe(word))
			}
			if _, err := client.PutSettings(env.Context, api.SettingsRequest{ServiceTokenTTL: &most}); err != nil {
				return err
			}
		}
		known, err := client.Settings(env.Context, "")
		if err != nil {
			return err
		}
		return env.show(output, known, func() { env.printSettings(known) })
	}
}

package command

import (
	"errors"
	"flag"
	"strings"
)

// parseFlags reads flags wherever they stand and returns the arguments. At
// stopAt arguments (when it is not 0), or at "--", the rest is left alone.
func parseFlags(set *flag.FlagSet, args []string, stopAt int) ([]string, error) {
	var left []string
	for {
		if err := set.Parse(args); err != nil {
			return nil, flagProblem(set, args, err)
		}
		rest := set.Args()
		parsed := len(args) - len(rest)
		if parsed > 0 && args[parsed-1] == "--" {
			return append(left, rest...), nil
		}
		if len(rest) == 0 {
			return left, nil
		}
		left, args = append(left, rest[0]), rest[1:]
		if stopAt > 0 && len(left) >= stopAt {
			if len(args) > 0 && args[0] == "--" {
				args = args[1:]
			}
			return append(left, args...), nil
		}
	}
}

// flagProblem turns the standard library's error into one that names the
// flag and a near one.
func flagProblem(set *flag.FlagSet, args []string, err error) error {
	if errors.Is(err, flag.ErrHelp) {
		return err
	}
	text := err.Error()
	if name, unknown := strings.CutPrefix(text, "flag provided but not defined: -"); unknown {
		var known []string
		set.VisitAll(func(f *flag.Flag) { known = append(known, f.Name) })
		if near := nearest(name, known); near != "" {
			return usagef("cli.unknown_flag_near", "flag", safe(name), "near", near)
		}
		return usagef("cli.unknown_flag", "flag", safe(name))
	}
	return usagef("cli.bad_flag", "problem", safe(text))
}

// listFlag collects a flag that may be given several times.
type listFlag []string

// String shows what was collected.
func (l *listFlag) String() string { return strings.Join(*l, ",") }

// Set adds a value.
func (l *listFlag) Set(value string) error {
	*l = append(*l, value)
	return nil
}

// outputFlags are the flags of every verb that prints a value.
type outputFlags struct {
	json     *bool
	template *string
}

func declareOutput(set *flag.FlagSet) outputFlags {
	return outputFlags{
		json:     set.Bool("json", false, "cli.flag.json"),
		template: set.String("t", "", "cli.flag.template"),
	}
}

// connectionFlags choose the cluster and who speaks.
type connectionFlags struct {
	address *string
	token   *string
	caCert  *string
}

func declareConnection(set *flag.FlagSet) connectionFlags {
	return connectionFlags{
		address: set.String("address", "", "cli.flag.address"),
		token:   set.String("token", "", "cli.flag.token"),
		caCert:  set.String("ca-cert", "", "cli.flag.ca_cert"),
	}
}

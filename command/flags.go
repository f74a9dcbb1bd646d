package command

import (
	"errors"
	"flag"
	"strings"
	"text/template"
	"time"

	"nomadlike/nomadlike/structs"
)

// parseFlags reads flags wherever they stand and returns the arguments. At
// stopAt arguments (when it is not 0), or at "--", the rest is left alone.
// A flag is written -name, --name, -name value or -name=value; those that are
// true or false take their value behind "=" only.
func parseFlags(set *flag.FlagSet, args []string, stopAt int) ([]string, error) {
	var left []string
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		if arg == "--" {
			return append(left, args...), nil
		}
		if len(arg) > 1 && arg[0] == '-' {
			rest, err := takeFlag(set, arg, args)
			if err != nil {
				return nil, err
			}
			args = rest
			continue
		}
		left = append(left, arg)
		if stopAt > 0 && len(left) == stopAt {
			if len(args) > 0 && args[0] == "--" {
				args = args[1:]
			}
			return append(left, args...), nil
		}
	}
	return left, nil
}

// takeFlag sets the flag that arg names, and returns what is left of rest.
func takeFlag(set *flag.FlagSet, arg string, rest []string) ([]string, error) {
	name, value, valued := strings.Cut(strings.TrimPrefix(arg[1:], "-"), "=")
	known := set.Lookup(name)
	switch {
	case known == nil && (name == "h" || name == "help"):
		return nil, flag.ErrHelp
	case known == nil:
		return nil, unknownFlag(set, name)
	case !valued && isSwitch(known):
		value = "true"
	case !valued && len(rest) == 0:
		return nil, usagef("cli.flag_needs_value", "flag", name)
	case !valued:
		value, rest = rest[0], rest[1:]
	}
	if err := set.Set(name, value); err != nil {
		var told *usageError
		if errors.As(err, &told) {
			return nil, told
		}
		kind := valueKind(known)
		if kind == "" {
			kind = "true|false"
		}
		return nil, usagef("cli.flag_bad_value", "flag", name, "value", safe(value), "kind", kind)
	}
	return rest, nil
}

func unknownFlag(set *flag.FlagSet, name string) error {
	var known []string
	set.VisitAll(func(f *flag.Flag) { known = append(known, f.Name) })
	if near := nearest(name, known); near != "" {
		return usagef("cli.unknown_flag_near", "flag", safe(name), "near", near)
	}
	return usagef("cli.unknown_flag", "flag", safe(name))
}

// isSwitch reports whether a flag is true or false.
func isSwitch(f *flag.Flag) bool {
	of, ok := f.Value.(interface{ IsBoolFlag() bool })
	return ok && of.IsBoolFlag()
}

// valueKind is what help and complaints call the value of a flag; "" for one
// that is true or false.
func valueKind(f *flag.Flag) string {
	switch f.Value.(type) {
	case *templateFlag:
		return "TEMPLATE"
	case *spanFlag:
		return "SPAN"
	case *momentFlag:
		return "TIME"
	}
	if isSwitch(f) {
		return ""
	}
	if getter, ok := f.Value.(flag.Getter); ok {
		switch getter.Get().(type) {
		case int, uint64:
			return "NUMBER"
		}
	}
	return "TEXT"
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

// spanFlag is a span of time as job files write it: "90s", "6h30m", "2d".
type spanFlag struct{ value structs.Duration }

// String shows the span.
func (s *spanFlag) String() string {
	if s.value == 0 {
		return ""
	}
	return structs.FormatDuration(s.value)
}

// Set reads a span.
func (s *spanFlag) Set(text string) error {
	value, err := structs.ParseDuration(text)
	if err != nil {
		return usagef("cli.bad_span", "value", safe(text))
	}
	s.value = value
	return nil
}

func declareSpan(set *flag.FlagSet, name string, otherwise time.Duration, usage string) *spanFlag {
	span := &spanFlag{value: structs.Duration(otherwise)}
	set.Var(span, name, usage)
	return span
}

// templateFlag is a Go template; what is wrong with it is told before
// anything is asked of a cluster.
type templateFlag struct {
	text   string
	parsed *template.Template
}

// String shows the template.
func (f *templateFlag) String() string { return f.text }

// Set reads a template.
func (f *templateFlag) Set(text string) error {
	parsed, err := template.New("-t").Parse(text)
	if err != nil {
		return usagef("cli.bad_template", "problem", safe(err.Error()))
	}
	f.text, f.parsed = text, parsed
	return nil
}

// outputFlags are the flags of every verb that prints a value.
type outputFlags struct {
	json     *bool
	template *templateFlag
}

func declareOutput(set *flag.FlagSet) outputFlags {
	flags := outputFlags{json: set.Bool("json", false, "cli.flag.json"), template: &templateFlag{}}
	set.Var(flags.template, "t", "cli.flag.template")
	return flags
}

// forPrograms reports whether the output is for a program: then nothing else
// goes to standard output.
func (f outputFlags) forPrograms() bool { return *f.json || f.template.parsed != nil }

// connectionFlags choose the cluster and who speaks.
type connectionFlags struct {
	address *string
	token   *string
	caCert  *string
	project *string // that requests act in
}

// means says what -project is for where that is more than to act in it. The flag is
// one of every verb that asks the cluster.
func (f connectionFlags) means(set *flag.FlagSet, usage string) {
	set.Lookup("project").Usage = usage
}

func declareConnection(set *flag.FlagSet) connectionFlags {
	return connectionFlags{
		address: set.String("address", "", "cli.flag.address"),
		token:   set.String("token", "", "cli.flag.token"),
		caCert:  set.String("ca-cert", "", "cli.flag.ca_cert"),
		project: set.String("project", "", "cli.flag.acting"),
	}
}

package config

import (
	"flag"
	"maps"
	"slices"
	"strings"
)

// Flags declares the flags of the command line that say settings, with the ids of their
// texts as usage. layer returns what those that were given say, once they are parsed.
func Flags(set *flag.FlagSet) (layer func() Settings) {
	declared := make(map[string]string) // path -> flag
	said := new(Settings)
	walkSettings(&declarer{set: set, declared: declared}, said, new(Config))
	return func() Settings {
		var s Settings
		given := make(map[string]*flag.Flag)
		set.Visit(func(f *flag.Flag) {
			for path, name := range declared {
				if name == f.Name {
					given[path] = f
				}
			}
		})
		walkSettings(&filler{given: given}, &s, new(Config))
		return s
	}
}

type declarer struct {
	set      *flag.FlagSet
	at       string
	declared map[string]string
}

func (d *declarer) label(*string)        {}
func (d *declarer) rule(func(*resolver)) {}

func (d *declarer) setting(name string, v *value) {
	if v.flag == "" {
		return
	}
	d.declared[below(d.at, name)] = v.flag
	switch v.said.(type) {
	case **bool:
		d.set.Bool(v.flag, false, v.usage)
	case **int:
		d.set.Int(v.flag, 0, v.usage)
	case *[]string:
		d.set.Var(new(listFlag), v.flag, v.usage)
	default:
		d.set.String(v.flag, "", v.usage)
	}
}

func (d *declarer) block(b block) {
	if !b.many {
		b.look(&declarer{d.set, below(d.at, b.name), d.declared})
	}
}

// filler makes a layer of flags that were given.
type filler struct {
	at    string
	given map[string]*flag.Flag
}

func (f *filler) label(*string)        {}
func (f *filler) rule(func(*resolver)) {}

func (f *filler) setting(name string, v *value) {
	given := f.given[below(f.at, name)]
	if given == nil {
		return
	}
	said := given.Value.(flag.Getter).Get()
	switch to := v.said.(type) {
	case **bool:
		*to = pointer(said.(bool))
	case **int:
		*to = pointer(said.(int))
	case *[]string:
		*to = said.([]string)
	case **string:
		*to = pointer(said.(string))
	}
}

func (f *filler) block(b block) {
	path := below(f.at, b.name)
	inside := func(given string) bool { return strings.HasPrefix(given, path+".") }
	if !b.many && slices.ContainsFunc(slices.Collect(maps.Keys(f.given)), inside) {
		b.walk(&filler{path, f.given}, 0)
	}
}

func pointer[T any](to T) *T { return &to }

// listFlag collects a flag that may be given several times.
type listFlag []string

// String shows what was collected.
func (l *listFlag) String() string { return strings.Join(*l, ",") }

// Set adds a value.
func (l *listFlag) Set(value string) error {
	*l = append(*l, value)
	return nil
}

// Get returns what was collected.
func (l *listFlag) Get() any { return []string(*l) }

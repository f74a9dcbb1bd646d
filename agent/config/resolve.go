package config

import (
	"slices"
	"strings"

	"nomadlike/nomadlike/client/data/remote"
	"nomadlike/nomadlike/structs"
)

// problem is one thing wrong with a configuration, named by its path.
type problem struct {
	path string // "server.bootstrap_expect"
	id   string // of the catalogue
	args []any  // pairs
}

// resolver makes a Config of merged settings: it visits all of them, has each
// settled, and applies the rules between them. It lists all problems.
type resolver struct {
	env      surroundings
	config   Config
	problems []problem
	remotes  map[string]remote.Server // of the storages that were read so far
}

// resolve turns merged settings into a Config. It lists all problems.
func resolve(s Settings, env surroundings) (Config, []problem) {
	r := &resolver{env: env}
	walkSettings(&settling{r: r}, &s, &r.config)
	r.config.said = s
	return r.config, r.problems
}

func (r *resolver) refuse(path, id string, args ...any) {
	r.problems = append(r.problems, problem{path: path, id: id, args: args})
}

// settling is a resolver in the block at a path.
type settling struct {
	r  *resolver
	at string
}

func (s *settling) label(*string) {}

func (s *settling) setting(name string, v *value) { v.settle(s.r, below(s.at, name)) }

func (s *settling) rule(apply func(*resolver)) { apply(s.r) }

// block goes on into blocks that stand once; of others a rule makes something.
func (s *settling) block(b block) {
	if !b.many {
		b.look(&settling{s.r, below(s.at, b.name)})
	}
}

// settle resolves one of several blocks.
func (r *resolver) settle(path string, walk func(visitor)) { walk(&settling{r, path}) }

// name checks a name where there is one.
func (r *resolver) name(path, name string) {
	if name == "" {
		return
	}
	if id := structs.NameProblem(name); id != "" {
		r.refuse(path, id)
	}
}

// word refuses what is not one of a few words.
func (r *resolver) word(path, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		r.refuse(path, "agent.config.word", "value", value, "allowed", strings.Join(allowed, ", "))
	}
}

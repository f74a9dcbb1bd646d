package command

import (
	"context"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"nomadlike/internal/messages"
)

// Env is what a verb sees of the world: streams, environment, language.
type Env struct {
	Context  context.Context //nolint:containedctx // one per process, ends with the signal that ends it
	Stdin    io.Reader
	Stdout   io.Writer
	Stderr   io.Writer
	Getenv   func(string) string
	Environ  []string
	Language messages.Language
	Colour   bool // stdout is a terminal that wants colours
	Escape   bool // stdout is a terminal: control characters in logs are shown, not obeyed
}

// NewEnv is the environment of this process.
func NewEnv(ctx context.Context) *Env {
	env := &Env{
		Context: ctx, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Getenv: os.Getenv, Environ: os.Environ(),
	}
	env.Language = messages.Detect(os.Getenv("LC_ALL"), os.Getenv("LC_MESSAGES"), os.Getenv("LANG"))
	env.Escape = term.IsTerminal(int(os.Stdout.Fd()))
	env.Colour = env.Escape && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return env
}

// takeLanguage takes -lang from wherever it stands before "--" and from
// NOMADLIKE_LANG, and returns the arguments without it.
func (env *Env) takeLanguage(args []string) []string {
	if lang := env.Getenv("NOMADLIKE_LANG"); lang != "" {
		env.Language = messages.Detect("", "", lang)
	}
	if len(args) == 0 {
		return args
	}
	name := strings.TrimLeft(args[0], "-")
	if value, ok := strings.CutPrefix(name, "lang="); ok && strings.HasPrefix(args[0], "-") {
		env.Language = messages.Detect("", "", value)
		return args[1:]
	}
	if name == "lang" && strings.HasPrefix(args[0], "-") && len(args) > 1 {
		env.Language = messages.Detect("", "", args[1])
		return args[2:]
	}
	return args
}

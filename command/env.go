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
	Context  context.Context // one per process, ends with the signal that ends it
	Stdin    io.Reader
	Stdout   *Screen
	Stderr   *Screen
	Getenv   func(string) string
	Environ  []string
	Language messages.Language
}

// Screen is a stream that a verb prints to, and whether a person sees it.
type Screen struct {
	io.Writer
	Colour   bool // a terminal that wants colours
	Terminal bool // control characters from elsewhere are shown, not obeyed
}

// NewEnv is the environment of this process.
func NewEnv(ctx context.Context) *Env {
	return &Env{
		Context: ctx, Stdin: os.Stdin, Stdout: screen(os.Stdout, os.Getenv), Stderr: screen(os.Stderr, os.Getenv),
		Getenv: os.Getenv, Environ: os.Environ(), Language: language(os.Getenv),
	}
}

// screen looks at what a file is connected to. NO_COLOR and TERM=dumb ask for
// plain text.
func screen(file *os.File, getenv func(string) string) *Screen {
	terminal := term.IsTerminal(int(file.Fd()))
	return &Screen{
		Writer: file, Terminal: terminal,
		Colour: terminal && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb",
	}
}

// language is what the locale asks for, unless NOMADLIKE_LANG is set.
func language(getenv func(string) string) messages.Language {
	if lang := getenv("NOMADLIKE_LANG"); lang != "" {
		return messages.Detect("", "", lang)
	}
	return messages.Detect(getenv("LC_ALL"), getenv("LC_MESSAGES"), getenv("LANG"))
}

// takeLanguage takes -lang from before the verb, and returns the arguments
// without it.
func (env *Env) takeLanguage(args []string) []string {
	if len(args) == 0 || !strings.HasPrefix(args[0], "-") {
		return args
	}
	name, value, valued := strings.Cut(strings.TrimLeft(args[0], "-"), "=")
	if name != "lang" {
		return args
	}
	rest := args[1:]
	if !valued {
		if len(rest) == 0 {
			return args
		}
		value, rest = rest[0], rest[1:]
	}
	env.Language = messages.Detect("", "", value)
	return rest
}

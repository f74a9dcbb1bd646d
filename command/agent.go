//go:build linux && !cli

package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"nomadlike/agent"
	"nomadlike/agent/config"
	"nomadlike/agent/httpapi"
	"nomadlike/agent/httpapi/front"
	"nomadlike/internal/logkey"
	"nomadlike/internal/messages"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/client/rankprocs"
	"nomadlike/nomadlike/client/rankshell"
	"nomadlike/ui"
	"nomadlike/website"
)

func agentVerbs() []verb {
	return []verb{
		{path: "agent", setup: runAgent},
		{path: "task-procs", raw: true, hidden: true, setup: rankShell(func(args, environ []string, _ io.Reader, _, _ io.Writer) int {
			return rankprocs.Run(context.Background(), args, environ, os.Stdout, os.Stderr) // files: processes inherit them
		})},
		{path: "mpi-rsh", raw: true, hidden: true, setup: rankShell(rankshell.RunShell)},
		{path: "mpi-ssh", raw: true, hidden: true, setup: rankShell(rankshell.RunSSH)},
		{path: "mpi-pdsh", raw: true, hidden: true, setup: rankShell(func(args, environ []string, _ io.Reader, stdout, stderr io.Writer) int {
			return rankshell.RunPdsh(args, environ, stdout, stderr)
		})},
	}
}

// rankShell is a program that launchers call inside a task to reach other ranks.
func rankShell(run func(args, environ []string, stdin io.Reader, stdout, stderr io.Writer) int) func(*flag.FlagSet) func(*Env, []string) error {
	return func(*flag.FlagSet) func(*Env, []string) error {
		return func(env *Env, args []string) error {
			if code := run(args, env.Environ, env.Stdin, env.Stdout, env.Stderr); code != 0 {
				return &exitError{code: code}
			}
			return nil
		}
	}
}

// agentExit is the exit code of an agent that could not go on, if it is one that
// scripts rely on.
func agentExit(err error) (code int, known bool) {
	return ExitStorage, errors.Is(err, agent.ErrStorage)
}

// agentReference is the page about the configuration of agents.
func agentReference(language messages.Language) (string, error) { return config.Reference(language) }

func runAgent(set *flag.FlagSet) func(*Env, []string) error {
	var files listFlag
	set.Var(&files, "config", "cli.flag.config")
	check := set.Bool("check-config", false, "cli.flag.check_config")
	asJSON := set.Bool("json", false, "cli.flag.check_json")
	said := config.Flags(set)
	return func(env *Env, args []string) error {
		if err := none(args); err != nil {
			return err
		}
		load := func() (config.Config, error) { return config.Load(files, said(), env.Language) }
		loaded, err := load()
		if *check {
			return env.checkConfig(loaded, err, *asJSON)
		}
		var wrong *config.Error
		if errors.As(err, &wrong) {
			if err := wrong.Render(env.Stderr, 0, env.Stderr.Colour); err != nil {
				return err
			}
			return &exitError{code: ExitError}
		}
		if err != nil {
			return err
		}
		level := new(slog.LevelVar)
		if err := level.UnmarshalText([]byte(loaded.LogLevel)); err != nil {
			return fmt.Errorf("set log level: %w", err)
		}
		lines := httpapi.NewLogLines(api.DebugLogBytes)
		log := agent.NewLogger(env.Stderr, loaded.LogFormat, level, lines)
		reload, stop := env.reloads(load, log)
		defer stop()
		if loaded.Server.Enabled {
			defer env.paceCollection()()
		}
		return agent.Run(env.Context, loaded, agent.Options{
			Log: log, Lines: lines, Level: level, Out: env.Stdout, Language: env.Language, Version: Version, Getenv: env.Getenv, Reload: reload,
			UI: front.Pages(ui.Files()), Guides: func(pages http.Handler) http.Handler { return website.Handler(website.Files(), pages) },
		})
	}
}

// reloads reads the configuration anew at each SIGHUP; one that is wrong is
// told and left aside. stop waits until no more will come.
func (env *Env) reloads(load func() (config.Config, error), log *slog.Logger) (configs <-chan config.Config, stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	out, done := make(chan config.Config), make(chan struct{})
	var reading sync.WaitGroup
	reading.Go(func() {
		for {
			select {
			case <-signals:
			case <-done:
				return
			}
			config, err := load()
			if err != nil {
				log.Error("configuration was not reloaded", logkey.Error, err)
				continue
			}
			select {
			case out <- config:
			case <-done:
				return
			}
		}
	})
	return out, func() {
		signal.Stop(signals)
		close(done)
		reading.Wait()
	}
}

//go:build linux && !cli

package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"nomadlike/agent"
	"nomadlike/agent/config"
	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/rankprocs"
	"nomadlike/nomadlike/client/rankshell"
	"nomadlike/ui"
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

// agentFlags are the settings that can be given on the command line; each is
// put over the configuration files only when it was given.
type agentFlags struct {
	set    *flag.FlagSet
	config listFlag
	join   listFlag

	name, dataDir, bind, advertise, joinToken, joinFile, logLevel, nodePool *string
	server, client, dev, check, found, json                                 *bool
	expect, port, gossip                                                    *int
}

func declareAgent(set *flag.FlagSet) *agentFlags {
	f := &agentFlags{
		set:       set,
		name:      set.String("name", "", "cli.flag.agent_name"),
		dataDir:   set.String("data-dir", "", "cli.flag.data_dir"),
		bind:      set.String("bind", "", "cli.flag.bind"),
		advertise: set.String("advertise", "", "cli.flag.advertise"),
		joinToken: set.String("join-token", "", "cli.flag.join"),
		joinFile:  set.String("join-token-file", "", "cli.flag.join_file"),
		logLevel:  set.String("log-level", "", "cli.flag.log_level"),
		nodePool:  set.String("pool", "", "cli.flag.pool"),
		server:    set.Bool("server", false, "cli.flag.server"),
		client:    set.Bool("client", false, "cli.flag.client"),
		dev:       set.Bool("dev", false, "cli.flag.dev"),
		found:     set.Bool("found", false, "cli.flag.found"),
		check:     set.Bool("check-config", false, "cli.flag.check_config"),
		json:      set.Bool("json", false, "cli.flag.check_json"),
		expect:    set.Int("bootstrap-expect", 0, "cli.flag.bootstrap_expect"),
		port:      set.Int("port", 0, "cli.flag.port"),
		gossip:    set.Int("gossip-port", 0, "cli.flag.gossip_port"),
	}
	set.Var(&f.config, "config", "cli.flag.config")
	set.Var(&f.join, "server-join", "cli.flag.server_join")
	return f
}

// settings gives the layer of what was said on the command line.
func (f *agentFlags) settings() config.Settings {
	var s config.Settings
	given := make(map[string]bool)
	f.set.Visit(func(one *flag.Flag) { given[one.Name] = true })
	text := func(name string, value *string) *string {
		if given[name] {
			return value
		}
		return nil
	}
	number := func(name string, value *int) *int {
		if given[name] {
			return value
		}
		return nil
	}
	s.Name, s.DataDir = text("name", f.name), text("data-dir", f.dataDir)
	s.Bind, s.Advertise = text("bind", f.bind), text("advertise", f.advertise)
	s.JoinToken, s.JoinFile = text("join-token", f.joinToken), text("join-token-file", f.joinFile)
	if given["log-level"] {
		s.Log = &config.LogBlock{Level: f.logLevel}
	}
	if given["port"] || given["gossip-port"] {
		s.Ports = &config.PortsBlock{HTTP: number("port", f.port), Gossip: number("gossip-port", f.gossip)}
	}
	if given["server"] || given["bootstrap-expect"] || len(f.join) > 0 {
		s.Server = &config.ServerBlock{BootstrapExpect: number("bootstrap-expect", f.expect), Join: f.join}
		if given["server"] {
			s.Server.Enabled = f.server
		}
	}
	if given["client"] || given["pool"] {
		s.Client = &config.ClientBlock{Pool: text("pool", f.nodePool)}
		if given["client"] {
			s.Client.Enabled = f.client
		}
	}
	if given["dev"] {
		s.Dev = f.dev
	}
	if given["found"] {
		s.Found = f.found
	}
	return s
}

func runAgent(set *flag.FlagSet) func(*Env, []string) error {
	flags := declareAgent(set)
	return func(env *Env, args []string) error {
		if err := none(args); err != nil {
			return err
		}
		load := func() (config.Config, error) { return config.Load(flags.config, flags.settings(), env.Language) }
		loaded, err := load()
		if *flags.check {
			return env.checkConfig(loaded, err, *flags.json)
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
		log := agent.NewLogger(env.Stderr, loaded.LogFormat, level)
		reload, stop := env.reloads(load, log)
		defer stop()
		if loaded.Server.Enabled {
			defer env.paceCollection()()
		}
		return agent.Run(env.Context, loaded, agent.Options{
			Log: log, Level: level, Out: env.Stdout, Language: env.Language, Version: Version, Getenv: env.Getenv, Reload: reload,
			UI: agent.Pages(ui.Files()),
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

package command

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// Files of ssh: what is trusted stands with the context; what ssh reads, in its own
// directory.
const (
	sshKnownHosts = "ssh-known-hosts"
	sshConfigFile = "nomadlike.conf"
)

func sshVerbs() []verb {
	return []verb{
		{path: "ssh", args: "JOB [COMMAND...]", stopAtArg: 1, setup: sshInto},
		{path: "ssh-config", setup: sshConfig},
		{path: "ssh-proxy", args: "HOST", hidden: true, setup: sshProxy},
	}
}

// sshInto starts the machine's own ssh, which comes back to ssh-proxy.
func sshInto(set *flag.FlagSet) func(*Env, []string) error {
	connection := declareConnection(set)
	rank := set.Int("rank", 0, "cli.flag.exec_rank")
	subjob := set.Int("subjob", 0, "cli.flag.subjob")
	attempt := set.Uint64("attempt", 0, "cli.flag.ssh_attempt")
	return func(env *Env, args []string) error {
		if len(args) == 0 {
			return usagef("cli.missing_argument", "argument", "JOB")
		}
		if *rank < 0 || *subjob < 0 {
			return structs.NewError(structs.CodeInvalid, "cli.ssh.negative")
		}
		target := structs.SSHTarget{Job: args[0], Rank: *rank, Subjob: *subjob, Attempt: *attempt}
		if strings.HasSuffix(args[0], structs.SSHDomain) {
			var err error
			if target, err = structs.ParseSSHHost(args[0]); err != nil {
				return err
			}
		} else if _, err := structs.ParseSSHHost(target.Host()); err != nil {
			return err
		}
		program, err := exec.LookPath("ssh")
		if err != nil {
			return structs.NewError(structs.CodeInvalid, "cli.ssh.no_program", "job", args[0]).Because(err)
		}
		block, err := env.sshBlock(connection)
		if err != nil {
			return err
		}
		words := []string{"-F", block.none}
		for _, option := range block.options {
			words = append(words, "-o", option.name+"="+option.value)
		}
		words = append(append(words, "--", target.Host()), args[1:]...)
		return env.runSSH(program, words, connection)
	}
}

// runSSH ends with ssh's exit code. Signals of the terminal reach both.
func (env *Env) runSSH(program string, words []string, connection connectionFlags) error {
	command := exec.CommandContext(context.WithoutCancel(env.Context), program, words...)
	command.Stdin, command.Stdout, command.Stderr = env.Stdin, env.Stdout, env.Stderr
	if *connection.token != "" { // not on the command line, which everybody on the machine sees
		command.Env = append(os.Environ(), "NOMADLIKE_TOKEN="+*connection.token)
	}
	err := command.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return &exitError{code: max(exit.ExitCode(), ExitError)}
	}
	if err != nil {
		return fmt.Errorf("run ssh: %w", err)
	}
	return nil
}

// sshOption is one line of ssh's configuration.
type sshOption struct{ name, value string }

// sshBlock is what ssh is told about hosts of the cluster.
type sshBlock struct {
	options []sshOption
	none    string // a file without configuration
}

// sshBlock asks the cluster by what its hosts are known, and remembers it.
func (env *Env) sshBlock(connection connectionFlags) (*sshBlock, error) {
	client, err := env.connect(connection)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	authority, err := client.SSHAuthority(env.Context)
	if err != nil {
		return nil, err
	}
	dir, err := api.ContextDir(env.Getenv)
	if err != nil {
		return nil, err
	}
	known := filepath.Join(dir, sshKnownHosts)
	line := "@cert-authority *" + structs.SSHDomain + " " + authority.Key + "\n"
	if strings.Count(line, "\n") != 1 {
		return nil, errors.New("the cluster's key for ssh is no line")
	}
	if err := writeIfNew(known, []byte(line)); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	proxy, err := sshProxyLine(self, connection)
	if err != nil {
		return nil, err
	}
	return &sshBlock{none: os.DevNull, options: []sshOption{
		{"ProxyCommand", proxy},
		{"UserKnownHostsFile", strconv.Quote(filepath.ToSlash(known))},
		{"GlobalKnownHostsFile", os.DevNull},
		{"StrictHostKeyChecking", "yes"},
		{"UpdateHostKeys", "no"},
		{"CheckHostIP", "no"},
		{"HostKeyAlgorithms", "ssh-ed25519-cert-v01@openssh.com"},
		{"PreferredAuthentications", "none"},
		{"PubkeyAuthentication", "no"},
		{"ForwardAgent", "no"},
		{"ForwardX11", "no"},
		{"ServerAliveInterval", "30"},
	}}, nil
}

// sshProxyLine is the command by which ssh reaches a host. A shell reads it, and
// ssh replaces words with %.
func sshProxyLine(self string, connection connectionFlags) (string, error) {
	words := []string{self, "ssh-proxy"}
	for _, flag := range []struct{ name, value string }{{"-address", *connection.address}, {"-ca-cert", *connection.caCert}, {"-project", *connection.project}} {
		if flag.value != "" {
			words = append(words, flag.name, flag.value)
		}
	}
	for i, word := range words {
		if strings.ContainsAny(word, "'\n\r\"\\") && os.PathSeparator == '/' {
			return "", structs.NewError(structs.CodeInvalid, "cli.ssh.unquotable", "word", safe(word))
		}
		quote := "'"
		if os.PathSeparator != '/' {
			quote, word = `"`, filepath.ToSlash(word)
		}
		words[i] = quote + strings.ReplaceAll(word, "%", "%%") + quote
	}
	return strings.Join(append(words, "%h"), " "), nil
}

// writeIfNew writes a file in one step unless it holds that already.
func writeIfNew(path string, data []byte) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return replaceFile(path, data)
}

// sshConfig writes the block for ssh's own configuration, or prints it.
func sshConfig(set *flag.FlagSet) func(*Env, []string) error {
	connection := declareConnection(set)
	show := set.Bool("print", false, "cli.flag.ssh_print")
	return func(env *Env, args []string) error {
		if err := none(args); err != nil {
			return err
		}
		block, err := env.sshBlock(connection)
		if err != nil {
			return err
		}
		var text strings.Builder
		fmt.Fprintf(&text, "Host *%s\n", structs.SSHDomain)
		for _, option := range block.options {
			fmt.Fprintf(&text, "    %s %s\n", option.name, option.value)
		}
		if *show {
			fmt.Fprint(env.Stdout, text.String())
			return nil
		}
		home := firstOf(env.Getenv("HOME"), env.Getenv("USERPROFILE"))
		if home == "" {
			return structs.NewError(structs.CodeInvalid, "cli.ssh.no_home")
		}
		dir := filepath.Join(home, ".ssh")
		if err := writeIfNew(filepath.Join(dir, sshConfigFile), []byte(text.String())); err != nil {
			return err
		}
		if err := includeBlock(filepath.Join(dir, "config")); err != nil {
			return err
		}
		fmt.Fprintln(env.Stdout, env.text("cli.ssh.written", "path", filepath.Join(dir, sshConfigFile)))
		return nil
	}
}

// includeBlock has ssh's configuration include the block, before everything else: the
// first word that ssh finds counts. What else stands there stays as it is.
func includeBlock(path string) error {
	target := path
	if real, err := filepath.EvalSymlinks(path); err == nil {
		target = real // of whoever keeps it elsewhere
	}
	old, err := os.ReadFile(target)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read %s: %w", path, err)
	}
	const line = "Include " + sshConfigFile
	for text := range strings.Lines(string(old)) {
		if strings.TrimSpace(text) == line {
			return nil
		}
	}
	return writeIfNew(target, append([]byte(line+"\n\n"), old...))
}

// sshProxy carries the bytes of a connection of ssh between standard streams and the
// task that the host name says.
func sshProxy(set *flag.FlagSet) func(*Env, []string) error {
	connection := declareConnection(set)
	return func(env *Env, args []string) error {
		host, err := one(args, "HOST")
		if err != nil {
			return err
		}
		target, err := structs.ParseSSHHost(host)
		if err != nil {
			return err
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		alloc, err := sshRank(env.Context, client, target)
		if err != nil {
			return err
		}
		return env.carrySSH(client, alloc)
	}
}

// sshRank finds the allocation that a host name means.
func sshRank(ctx context.Context, client *api.Client, target structs.SSHTarget) (*structs.Allocation, error) {
	if target.Attempt == 0 {
		return runningRank(ctx, client, target.Job, target.Subjob, target.Rank)
	}
	list, _, err := client.Allocations(ctx, target.Job, api.AllocationFilter{}, nil)
	if err != nil {
		return nil, err
	}
	for i := range list.Allocations {
		alloc := &list.Allocations[i]
		if alloc.Subjob == target.Subjob && alloc.Rank == target.Rank && alloc.Attempt == target.Attempt && alloc.Enterable() {
			return alloc, nil
		}
	}
	return nil, structs.NewError(structs.CodeConflict, "cli.exec.not_running", "job", target.Job, "rank", target.Rank)
}

// carrySSH copies both ways until the task's side ends.
func (env *Env) carrySSH(client *api.Client, alloc *structs.Allocation) error {
	ctx, cancel := context.WithCancel(env.Context)
	defer cancel()
	conn, err := client.Exec(ctx, alloc.ID, structs.ExecStart{Attempt: alloc.Attempt, SSH: new(structs.SSHHost)})
	if err != nil {
		return err
	}
	defer conn.Close()
	go env.sendInput(ctx, conn) // a read of standard input cannot be waited for; it ends with the process
	for {
		down, err := conn.Recv(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case down.Exit != nil && down.Exit.Err != nil:
			return down.Exit.Err
		case down.Exit != nil:
			return nil
		}
		if _, err := env.Stdout.Write(down.Stdout); err != nil {
			return fmt.Errorf("write output: %w", err)
		}
	}
}

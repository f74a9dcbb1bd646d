package command

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"nomadlike/nomadlike/structs"
)

const portMax = 65535

// forwarded says which ports of this machine are ports of a rank.
type forwarded struct {
	Job     string          `json:"job"`
	JobID   string          `json:"job_id"`
	Subjob  int             `json:"subjob"`
	Rank    int             `json:"rank"`
	Attempt uint64          `json:"attempt"`
	AllocID string          `json:"alloc_id"`
	Node    string          `json:"node"`
	Ports   []forwardedPort `json:"ports"`
}

// forwardedPort is one of them.
type forwardedPort struct {
	Local string `json:"local"` // address here, "127.0.0.1:8080"
	Port  int    `json:"port"`  // of the task
	Name  string `json:"name,omitempty"`
}

// portPair is what was typed: a port here, and one of the task.
type portPair struct {
	local int // 0: any free one; localSame: the task's
	task  string
}

const localSame = -1

// parsePortPair reads LOCAL[:PORT]; PORT alone is the same number here and there.
func parsePortPair(word string) (portPair, error) {
	local, task, both := strings.Cut(word, ":")
	if !both {
		local, task = "", word
	}
	pair := portPair{local: localSame, task: task}
	bad := usagef("cli.forward.pair", "pair", safe(word))
	if both {
		number, err := strconv.ParseUint(local, 10, 16)
		if err != nil {
			return pair, bad
		}
		pair.local = int(number)
	}
	if number, err := strconv.Atoi(task); err == nil && (number < 1 || number > portMax) || err != nil && structs.NameProblem(task) != "" {
		return pair, bad
	}
	return pair, nil
}

// portOf finds the port of a task that a pair means, and its name if it has one.
func (p portPair) portOf(alloc *structs.Allocation) (number int, name string, err error) {
	if number, err := strconv.Atoi(p.task); err == nil {
		return number, "", nil
	}
	if number, ok := alloc.Ports[p.task]; ok {
		return number, p.task, nil
	}
	names := slices.Sorted(maps.Keys(alloc.Ports))
	if len(names) == 0 {
		return 0, "", structs.NewError(structs.CodeNotFound, "cli.forward.no_names", "job", alloc.JobName, "port", p.task)
	}
	return 0, "", structs.NewError(structs.CodeNotFound, "cli.forward.no_name", "job", alloc.JobName, "port", p.task, "names", strings.Join(names, ", "))
}

func jobForward(set *flag.FlagSet) func(*Env, []string) error {
	connection, output := declareConnection(set), declareOutput(set)
	rank := set.Int("rank", 0, "cli.flag.forward_rank")
	subjob := set.Int("subjob", 0, "cli.flag.subjob")
	bind := set.String("bind", "127.0.0.1", "cli.flag.forward_bind")
	return func(env *Env, args []string) error {
		if len(args) < 2 {
			return usagef("cli.missing_argument", "argument", "JOB LOCAL[:PORT]")
		}
		pairs := make([]portPair, len(args)-1)
		for i, word := range args[1:] {
			var err error
			if pairs[i], err = parsePortPair(word); err != nil {
				return err
			}
		}
		address, err := netip.ParseAddr(*bind)
		if err != nil {
			return usagef("cli.forward.bind", "address", safe(*bind))
		}
		client, err := env.connect(connection)
		if err != nil {
			return err
		}
		defer client.Close()
		alloc, err := runningRank(env.Context, client, args[0], *subjob, *rank)
		if err != nil {
			return err
		}
		t := newTunnel(client, alloc, env.forwardNotes(alloc))
		defer t.close()
		told, err := t.listen(alloc, address, pairs)
		if err != nil {
			return err
		}
		if err := t.connect(env.Context); err != nil {
			return err
		}
		if !address.IsLoopback() {
			fmt.Fprintf(env.Stderr, "%s %s\n", env.Stderr.paint(colourYellow, env.text("cli.warning")), env.text("cli.forward.open", "address", address))
		}
		if err := env.show(output, told, func() { env.printForwarded(told) }); err != nil {
			return err
		}
		return t.serve(env.Context)
	}
}

func (env *Env) printForwarded(told *forwarded) {
	for _, p := range told.Ports {
		port := strconv.Itoa(p.Port)
		if p.Name != "" {
			port = p.Name + " (" + port + ")"
		}
		fmt.Fprintln(env.Stdout, env.text("cli.forward.listening",
			"address", p.Local, "port", port, "rank", told.Rank, "job", safe(told.Job), "node", safe(told.Node)))
	}
	if env.Stdout.Terminal {
		fmt.Fprintln(env.Stdout, env.text("cli.forward.leave"))
	}
}

// forwardNotes says what happens to connections, to people and in logs.
func (env *Env) forwardNotes(alloc *structs.Allocation) func(id string, params ...any) {
	return func(id string, params ...any) {
		params = append(params, "job", safe(alloc.JobName), "rank", alloc.Rank)
		fmt.Fprintln(env.Stderr, env.text(id, params...))
	}
}

// listen opens all ports here, or none.
func (t *tunnel) listen(alloc *structs.Allocation, address netip.Addr, pairs []portPair) (*forwarded, error) {
	told := &forwarded{
		Job: alloc.JobName, JobID: alloc.JobID, Subjob: alloc.Subjob, Rank: alloc.Rank, Attempt: alloc.Attempt,
		AllocID: alloc.ID, Node: alloc.NodeName,
	}
	for _, pair := range pairs {
		number, name, err := pair.portOf(alloc)
		if err != nil {
			return nil, err
		}
		local := pair.local
		if local == localSame {
			local = number
		}
		at := net.JoinHostPort(address.String(), strconv.Itoa(local))
		listener, err := net.Listen("tcp", at)
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			return nil, structs.NewError(structs.CodeConflict, "cli.forward.in_use", "address", at, "port", pair.task, "job", alloc.JobName)
		case errors.Is(err, syscall.EADDRNOTAVAIL):
			return nil, structs.NewError(structs.CodeInvalid, "cli.forward.not_here", "address", address)
		case errors.Is(err, syscall.EACCES):
			return nil, structs.NewError(structs.CodeForbidden, "cli.forward.denied", "address", at, "port", pair.task, "job", alloc.JobName)
		case err != nil:
			return nil, fmt.Errorf("listen: %w", err)
		}
		port := &tunnelPort{listener: listener, number: number}
		t.ports = append(t.ports, port)
		told.Ports = append(told.Ports, forwardedPort{Local: listener.Addr().String(), Port: number, Name: name})
	}
	return told, nil
}

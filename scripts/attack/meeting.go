package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// meeting has tasks of a user connect to the port at which a gang of another
// project meets: on the node of its first rank, on that of the other, and on one
// that it is not on.
func (t *target) meeting(user *api.Client) {
	var gang string
	for _, from := range []string{"c2", "c1", "c3"} {
		t.line("6.40 a task on "+from+" at the port at which another project's gang meets on c2 and c1", "its other rank is greeted there, and the task reaches another port of c2", func(ctx context.Context) error {
			if gang != "" {
				return nil
			}
			serve := `\$s = IO::Socket::INET->new(Listen => 9, LocalPort => \$ENV{MASTER_PORT}, ReuseAddr => 1); \$| = 1; while (\$c = \$s->accept) { print qq(asked by ), \$c->peerhost, qq(\n); close \$c }`
			ask := `until (IO::Socket::INET->new(\$ENV{MASTER_ADDR} . qq(:) . \$ENV{MASTER_PORT})) { sleep 1 } sleep 3600`
			command := fmt.Sprintf(`bash -c 'if [ $RANK = 0 ]; then exec perl -MIO::Socket -e "%s"; else exec perl -MIO::Socket -e "%s"; fi'`, serve, ask)
			submitted, err := t.admin.SubmitJob(ctx, api.JobRequest{HCL: fmt.Sprintf("job \"meets\" {\n  project = \"victims\"\n  nodes = 2\n  distributed \"pytorch\" {}\n  resources {\n    cpu = 0.1\n    memory = \"64MiB\"\n  }\n  placement { nodes = [\"c2\", \"c1\"] }\n  task { command = %s }\n  stop_grace = \"1s\"\n}\n",
				hclString(command))}, "")
			if err != nil {
				return fmt.Errorf("submit the gang: %w", err)
			}
			gang = submitted.JobID
			return t.says(ctx, t.admin, gang, "asked by ")
		}, func(ctx context.Context) error {
			door, err := t.door(ctx, gang)
			if err != nil {
				return err
			}
			agent, _, err := net.SplitHostPort(door)
			if err != nil {
				return err
			}
			script := fmt.Sprintf(`perl -MIO::Socket -e '$| = 1; for ("%s", "%s") { print "$_: ", IO::Socket::INET->new(PeerAddr => $_, Timeout => 5) ? "in" : "not in: $!", "\n" } print "done\n"; sleep 600'`,
				net.JoinHostPort(agent, "4646"), door)
			id, err := t.runOn(ctx, user, "meets-"+from, script, from)
			if err != nil {
				return err
			}
			defer func() {
				_, _ = t.admin.StopJob(context.Background(), id, api.JobStopRequest{})
				_, _ = t.ended(context.Background(), id)
			}()
			if err := t.says(ctx, t.admin, id, "done"); err != nil {
				return err
			}
			said := t.file(ctx, t.admin, id, "logs/stdout.0")
			switch {
			case !strings.Contains(said, ":4646: in\n"):
				return fmt.Errorf("not tried, the task reaches nothing: %q", said)
			case !strings.Contains(said, door+": not in"):
				return fmt.Errorf("it came in: %q", said)
			}
			return nil
		})
	}
	if gang != "" {
		_, _ = t.admin.StopJob(context.Background(), gang, api.JobStopRequest{})
	}
}

// door is where a gang meets.
func (t *target) door(ctx context.Context, gang string) (string, error) {
	list, _, err := t.admin.Allocations(ctx, gang, api.AllocationFilter{}, nil)
	if err != nil {
		return "", err
	}
	for i := range list.Allocations {
		one := &list.Allocations[i]
		port := one.Ports[structs.MasterPortName]
		if port == 0 {
			continue
		}
		node, _, err := t.admin.Node(ctx, one.NodeID, nil)
		if err != nil {
			return "", err
		}
		return net.JoinHostPort(node.Addr, strconv.Itoa(port)), nil
	}
	return "", fmt.Errorf("job %s meets nowhere", gang)
}

// hclString writes a text as a string of a job file.
func hclString(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "${", "$${", "%{", "%%{").Replace(text) + `"`
}

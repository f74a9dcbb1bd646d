package launch

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"nomadlike/nomadlike/structs"
)

func TestParsePdsh(t *testing.T) {
	for _, c := range []struct {
		name    string
		args    []string
		hosts   string
		command string
		fanout  int
		largest bool
		problem string
	}{
		{
			name: "deepspeed 0.16", args: []string{"-S", "-f", "1024", "-w", "j-1-0,j-1-1", "export NCCL_DEBUG=INFO;  cd /job; /usr/bin/python3 -u -m deepspeed.launcher.launch --node_rank=%n --master_addr=j-1-0 train.py"},
			hosts: "j-1-0 j-1-1", command: "export NCCL_DEBUG=INFO;  cd /job; /usr/bin/python3 -u -m deepspeed.launcher.launch --node_rank=%n --master_addr=j-1-0 train.py", fanout: 1024, largest: true,
		},
		{name: "words are joined", args: []string{"-w", "a", "ls", "-l"}, hosts: "a", command: "ls -l", fanout: pdshFanout},
		{name: "joined options", args: []string{"-SNf8", "-Rssh", "-lroot", "-wa", "-t", "10", "ls"}, hosts: "a", command: "ls", fanout: 8, largest: true},
		{name: "ranges", args: []string{"-w", "n[8-10,3]x,root@b,n8x", "ls"}, hosts: "n8x n9x n10x n3x b", command: "ls", fanout: pdshFanout},
		{name: "zeros", args: []string{"-w", "n[08-10]", "-x", "n09", "ls"}, hosts: "n08 n10", command: "ls", fanout: pdshFanout},
		{name: "no hosts", args: []string{"ls"}, problem: "launch.shell_no_host"},
		{name: "all excluded", args: []string{"-w", "a", "-x", "a", "ls"}, problem: "launch.shell_no_host"},
		{name: "no command", args: []string{"-w", "a"}, problem: "launch.shell_no_command"},
		{name: "no value", args: []string{"-w"}, problem: "launch.shell_option_value"},
		{name: "unknown option", args: []string{"-z", "-w", "a", "ls"}, problem: "launch.shell_option"},
		{name: "a file of hosts", args: []string{"-w", "^/etc/hosts", "ls"}, problem: "launch.shell_host"},
		{name: "endless range", args: []string{"-w", "n[0-4294967295]", "ls"}, problem: "launch.shell_host"},
		{name: "many ranges", args: []string{"-w", "n[0-4000],m[0-4000]", "ls"}, problem: "launch.pdsh_hosts"},
		{name: "open bracket", args: []string{"-w", "n[0-3", "ls"}, problem: "launch.shell_host"},
		{name: "fan-out", args: []string{"-f", "0", "-w", "a", "ls"}, problem: "launch.pdsh_fanout"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := ParsePdsh(c.args)
			var problem *structs.Error
			if errors.As(err, &problem) != (c.problem != "") || problem != nil && problem.ID != c.problem {
				t.Fatalf("got %v, want %q", err, c.problem)
			}
			if err != nil {
				return
			}
			if strings.Join(p.Hosts, " ") != c.hosts || p.Command != c.command || p.Fanout != c.fanout || p.Largest != c.largest {
				t.Errorf("got %+v", p)
			}
		})
	}
	p := Pdsh{Hosts: []string{"a", "b"}, Command: "echo %n of %h for %u, 100%% %d"}
	if got := p.CommandOn(1, "ann"); got != "echo 1 of b for ann, 100% %d" {
		t.Errorf("got %q", got)
	}
}

func FuzzParsePdsh(f *testing.F) {
	for _, seed := range []string{"-S\n-f\n1024\n-w\na,b\nls", "-w\nn[0-3,7]x\nls", "-wn[08-10]\n-xn09\nls", "-w\n[[]],[\nx"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, joined string) {
		p, err := ParsePdsh(strings.Split(joined, "\n"))
		var told *structs.Error
		switch {
		case err != nil && !errors.As(err, &told):
			t.Fatalf("not an error for people: %v", err)
		case err != nil:
		case len(p.Hosts) == 0 || len(p.Hosts) > pdshHostsMax || p.Command == "" || p.Fanout < 1 || p.Fanout > pdshFanoutMax || slices.ContainsFunc(p.Hosts, hostProblem):
			t.Fatalf("got %+v", p)
		}
	})
}

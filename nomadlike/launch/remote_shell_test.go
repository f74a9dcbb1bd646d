package launch

import (
	"errors"
	"os"
	"strings"
	"testing"
	"unicode"

	"nomadlike/nomadlike/structs"
)

// TestParseRemoteShell: the long ones are what the launchers of Debian's Open
// MPI 4.1 and MPICH 4.0 really hand to their remote shell, one argument a line.
func TestParseRemoteShell(t *testing.T) {
	read := func(name string) []string {
		data, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	}
	cases := []struct {
		name          string
		args          []string
		host, command string // command: how it begins
		problem       string
	}{
		{name: "Open MPI 4", args: read("argv-openmpi.args"), host: "digits-2-1", command: `orted --daemonize -mca ess "env" -mca ess_base_jobid "2037841920"`},
		{name: "MPICH", args: read("argv-mpich.args"), host: "digits-2-1", command: `"/usr/bin/hydra_pmi_proxy" --control-port digits-2-0:37921`},
		{name: "plain", args: []string{"h", "ls", "-l"}, host: "h", command: "ls -l"},
		{name: "options", args: []string{"-x", "-l", "root", "-p", "22", "-o", "A=b", "-oC=d", "-q", "h", "ls"}, host: "h", command: "ls"},
		{name: "joined", args: []string{"-xqp22", "-4lroot", "h", "ls"}, host: "h", command: "ls"},
		{name: "joined, value apart", args: []string{"-xp", "22", "h", "ls"}, host: "h", command: "ls"},
		{name: "user", args: []string{"root@h", "ls"}, host: "h", command: "ls"},
		{name: "end of options", args: []string{"-n", "--", "h", "ls"}, host: "h", command: "ls"},
		{name: "options of the command", args: []string{"h", "-x", "--", "y"}, host: "h", command: "-x -- y"},
		{name: "quotes are the far shell's", args: []string{"h", "echo 'a  b'", `"c"`}, host: "h", command: `echo 'a  b' "c"`},
		{name: "nothing", problem: "launch.shell_no_host"},
		{name: "options only", args: []string{"-x"}, problem: "launch.shell_no_host"},
		{name: "no command", args: []string{"h"}, problem: "launch.shell_no_command"},
		{name: "blank command", args: []string{"h", " ", ""}, problem: "launch.shell_no_command"},
		{name: "value missing", args: []string{"-l"}, problem: "launch.shell_option_value"},
		{name: "unknown option", args: []string{"-z", "h", "ls"}, problem: "launch.shell_option"},
		{name: "long option", args: []string{"--help", "h", "ls"}, problem: "launch.shell_option"},
		{name: "empty host", args: []string{"", "ls"}, problem: "launch.shell_no_host"},
		{name: "dash", args: []string{"-", "ls"}, problem: "launch.shell_no_host"},
		{name: "host like an option", args: []string{"--", "-x", "ls"}, problem: "launch.shell_host"},
		{name: "user only", args: []string{"root@", "ls"}, problem: "launch.shell_host"},
		{name: "path as host", args: []string{"../h", "ls"}, problem: "launch.shell_host"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			host, command, err := ParseRemoteShell(c.args)
			problem := ""
			if e := (*structs.Error)(nil); errors.As(err, &e) {
				problem = e.ID
			}
			if host != c.host || !strings.HasPrefix(command, c.command) || problem != c.problem {
				t.Errorf("got %q, %q, %v; want %q, %q…, %q", host, command, err, c.host, c.command, c.problem)
			}
		})
	}
}

// FuzzParseRemoteShell: arguments are parted at NUL, which none can hold.
func FuzzParseRemoteShell(f *testing.F) {
	for _, args := range []string{"-x\x00h\x00ls", "-l\x00root\x00h\x00ls", "root@h\x00echo 'a'", "--\x00h\x00x", "-o"} {
		f.Add(args)
	}
	f.Fuzz(func(t *testing.T, joined string) {
		args := strings.Split(joined, "\x00")
		host, command, err := ParseRemoteShell(args)
		if err != nil {
			if host != "" || command != "" || structs.CodeOf(err) != structs.CodeInvalid {
				t.Fatalf("%q: %q %q %v", args, host, command, err)
			}
			return
		}
		if hostProblem(host) || strings.TrimSpace(command) == "" {
			t.Fatalf("%q gives host %q, command %q", args, host, command)
		}
		if !strings.HasSuffix(strings.TrimRightFunc(strings.Join(args, " "), unicode.IsSpace), command) {
			t.Fatalf("%q: the command %q is not what stands behind the host", args, command)
		}
		again, same, err := ParseRemoteShell([]string{host, command})
		if err != nil || again != host || same != command {
			t.Fatalf("%q: parsed again: %q %q %v", args, again, same, err)
		}
	})
}

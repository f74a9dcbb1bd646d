package envcheck

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestWants(t *testing.T) {
	for _, c := range []struct {
		name    string
		command []string
		want    string
	}{
		{"read without a default", []string{"bash", "-c", `python train.py --lr $LR "${DATA}/x"`}, "LR DATA"},
		{"as row 222 writes it", []string{"/bin/bash", "-c", "echo $NOT_SET"}, "NOT_SET"},
		{"options before the script", []string{"bash", "-euo", "pipefail", "--login", "-c", "echo $A"}, "A"},
		{"options together", []string{"sh", "-ec", "echo $A"}, "A"},
		{"arguments behind it", []string{"sh", "-c", "echo $1 $A $@", "sh", "$B"}, "A"},
		{"defaults", []string{"sh", "-c", "echo ${A:-1} ${B-2} ${C:+3} ${D:=4} ${E?no} $A $D"}, ""},
		{"a part of it", []string{"bash", "-c", "echo ${A%.pt} ${B/x/y} ${#C}"}, "A B C"},
		{"set before", []string{"sh", "-c", "A=1; B=$A; export C=2 D; for E in 1 2; do echo $B $C $D $E; done"}, ""},
		{"set by commands", []string{"bash", "-c", "read -r A B; printf -v C x; mapfile D; while getopts ab: E; do echo $A $B $C $D $E; done"}, ""},
		{"in functions", []string{"bash", "-c", "f() { local a=1 b; echo $a $b $1; }; f $C"}, "C"},
		{"for one command", []string{"sh", "-c", "A=1 python t.py; echo $A"}, ""},
		{"tested", []string{"bash", "-c", `[ -n "$A" ] && echo $A; [[ -v B ]] && echo $B; if test -z "$C"; then echo $C; fi; [[ $D == x ]] && echo $D`}, ""},
		{"arithmetic", []string{"bash", "-c", "for ((i=0; i<3; i++)); do echo $i $((j+1)); done; let k=1; echo $j $k"}, ""},
		{"quoted", []string{"sh", "-c", `echo '$A' \$B "$C" "\$D"`}, "C"},
		{"here document", []string{"sh", "-c", "cat <<X\n$A\nX\ncat <<'Y'\n$B\nY"}, "A"},
		{"substituted commands", []string{"sh", "-c", "echo $(basename $A) `echo $B`"}, "A B"},
		{"a script in a script", []string{"sh", "-c", `export A=1; bash -c 'echo $A $B'`}, "B"},
		{"from elsewhere", []string{"bash", "-c", "source /opt/set_env.sh && echo $A"}, ""},
		{"evaluated", []string{"bash", "-c", `eval "$A"; echo $B`}, ""},
		{"evaluated by name", []string{"bash", "-c", `builtin source e; echo $A`}, ""},
		{"evaluated by name of a command", []string{"bash", "-c", `command . e; command -p eval x; echo $A`}, ""},
		{"a command by name", []string{"bash", "-c", `command -v x; command echo $A; builtin echo $B`}, "A B"},
		{"set by a command by name", []string{"bash", "-c", `command read A; builtin printf -v B x; echo $A $B`}, ""},
		{"declared by what a command says", []string{"bash", "-c", `export $(cat .env); echo $A`}, ""},
		{"declared in quotes", []string{"bash", "-c", `export "A=1" 'B'=2; declare "C=$X" D"=$X"; echo $A $B $C $D`}, "X"},
		{"declared by a name of a name", []string{"bash", "-c", `declare "$N=1"; echo $A`}, ""},
		{"options of declarations", []string{"bash", "-c", `declare -x -i A=1; export -n B; readonly -p; echo $A $B $C`}, "C"},
		{"descriptors", []string{"bash", "-c", `exec {FD}>/dev/null; coproc WORK { cat; }; coproc cat; echo $FD ${WORK[0]} $COPROC $A`}, "A"},
		{"behind env", []string{"bash", "-c", `env A=1 bash -c 'echo $A $B'; exec bash -c 'echo $C'`}, "C"},
		{"the shell's own", []string{"bash", "-c", "echo $PWD $RANDOM $BASH_VERSION $HOME $PATH $SECONDS $$ $? $!"}, ""},
		{"does not parse", []string{"sh", "-c", "if $A"}, ""},
		{"no script", []string{"bash", "train.sh"}, ""},
		{"no shell", []string{"python", "-c", "$A"}, ""},
		{"nothing", nil, ""},
	} {
		if got := strings.Join(Wants(c.command), " "); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestWantsAsBash runs scripts in which everything that is wanted is missing
// under `set -u`: bash stumbles over exactly these.
func TestWantsAsBash(t *testing.T) {
	for _, script := range []string{
		"echo $A", "echo ${A:-x}", "A=1; echo $A", `echo "$A"`, "echo '$A'", "for A in 1; do echo $A; done", "echo $(echo $A)",
		"cat <<X\n$A\nX", "echo ${A%x}", "read A <<<1; echo $A", "f() { local A=1; echo $A; }; f", "printf -v A x; echo $A", "[[ -v A ]] && echo $A || true",
	} {
		wanted := Wants([]string{"bash", "-c", script})
		run := exec.Command("bash", "-uc", script)
		run.Env = []string{"PATH=" + os.Getenv("PATH")}
		out, _ := run.CombinedOutput() // a shell within may be the one that ends
		if stumbled := strings.Contains(string(out), "A: unbound variable"); stumbled != slices.Contains(wanted, "A") {
			t.Errorf("%s: wanted %v, bash said %q", script, wanted, out)
		}
	}
}

func FuzzWants(f *testing.F) {
	for _, script := range []string{"echo $A", "${A:-$(b)}", "[[ -v A ]]", "((i++))", "<<X\n$A\nX", `foo="${foo/'{eo}'/$bar}"`, "bash -c 'bash -c \"$A\"'"} {
		f.Add(script)
	}
	f.Fuzz(func(t *testing.T, script string) {
		for _, name := range Wants([]string{"bash", "-c", script}) {
			if name == "" || strings.ContainsAny(name, " \n=$\x00") {
				t.Errorf("%q is no name", name)
			}
		}
	})
}

package structs

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestSplitCommand(t *testing.T) {
	cases := []struct {
		command string
		want    []string
		err     error
	}{
		{command: ""},
		{command: " \t\n "},
		{command: "python3 train.py --epochs 5", want: []string{"python3", "train.py", "--epochs", "5"}},
		{command: `bash -c "A=1 b && c"`, want: []string{"bash", "-c", "A=1 b && c"}},
		{command: `a'b'"c"d ''`, want: []string{"abcd", ""}},
		{command: `"\$x \a \" \\" '\$x'`, want: []string{`$x \a " \`, `\$x`}},
		{command: `a\ b \'`, want: []string{"a b", "'"}},
		{command: `a\ `, want: []string{"a "}},
		{command: "a \\\n b \\\r\n c\n", want: []string{"a", "b", "c"}},
		{command: "\"a\\\nb\"", want: []string{"ab"}},
		{command: `run $A ${B} "$C" $ $1 ${D:-e}`, want: []string{"run", "$A", "${B}", "$C", "$", "$1", "${D:-e}"}},
		{command: "训练 '数 据'", want: []string{"训练", "数 据"}},
		{command: `a "b`, err: ErrQuoteOpen},
		{command: `a 'b`, err: ErrQuoteOpen},
		{command: `"\`, err: ErrQuoteOpen},
		{command: `a \`, err: ErrBackslashLast},
		{command: "a\x00b", err: ErrCommandNUL},
	}
	for _, c := range cases {
		got, err := SplitCommand(c.command)
		if !errors.Is(err, c.err) {
			t.Errorf("SplitCommand(%q): error %v, want %v", c.command, err, c.err)
		}
		if diff := cmp.Diff(c.want, got); len(c.want)+len(got) > 0 && diff != "" {
			t.Errorf("SplitCommand(%q) (-want +got):\n%s", c.command, diff)
		}
	}
}

func TestExpandCommand(t *testing.T) {
	env := map[string]string{"N": "2", "TWO": "a b", "EMPTY": ""}
	lookup := func(name string) (string, bool) { value, ok := env[name]; return value, ok }
	words, missing, err := ExpandCommand(`run --n=$N ${TWO} "$TWO" '$N' \$N $EMPTY x$GONE $(x`, lookup)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"run", "--n=2", "a b", "a b", "$N", "$N", "", "x", "$(x"}
	if diff := cmp.Diff(want, words); diff != "" {
		t.Errorf("words (-want +got):\n%s", diff)
	}
	if !slices.Equal(missing, []string{"GONE"}) {
		t.Errorf("missing: %v", missing)
	}
	if _, _, err := ExpandCommand("echo ${N:-1}", lookup); !errors.Is(err, ErrExpansionShape) {
		t.Errorf("${N:-1}: error %v", err)
	}
}

// TestShellsReadTheirOwnWord holds what a shell reads by itself against what is
// replaced before it starts.
func TestShellsReadTheirOwnWord(t *testing.T) {
	lookup := func(name string) (string, bool) { return "<" + name + ">", true }
	for command, want := range map[string][]string{
		`bash -c "for RANK in 0 1; do echo $RANK; done"`:    {"bash", "-c", "for RANK in 0 1; do echo $RANK; done"},
		`bash -c "echo $(hostname) ${X:-y} ` + "`id`" + `"`: {"bash", "-c", "echo $(hostname) ${X:-y} `id`"},
		`bash -c "echo \$A" "$B" ${C}`:                      {"bash", "-c", "echo $A", "<B>", "<C>"},
		`/bin/bash -euo pipefail -c "$A"`:                   {"/bin/bash", "-euo", "pipefail", "-c", "$A"},
		`bash --login -xc -e "$A"`:                          {"bash", "--login", "-xc", "-e", "$A"},
		`bash -c $A`:                                        {"bash", "-c", "$A"},
		`env A=$B sh -c "$A"`:                               {"env", "A=<B>", "sh", "-c", "$A"},
		`mpirun -np $N bash -c "$A" x`:                      {"mpirun", "-np", "<N>", "bash", "-c", "$A", "x"},
		`bash train.sh -c "$A"`:                             {"bash", "train.sh", "-c", "<A>"},
		`python train.py -c "$A"`:                           {"python", "train.py", "-c", "<A>"},
	} {
		words, _, err := ExpandCommand(command, lookup)
		if err != nil {
			t.Errorf("%s: %v", command, err)
		}
		if diff := cmp.Diff(want, words); diff != "" {
			t.Errorf("%s (-want +got):\n%s", command, diff)
		}
		job := &Job{Name: "a", Task: Task{Command: command}}
		job.SetDefaults()
		for _, p := range job.Validate() {
			if strings.HasPrefix(p.ID, "job.command") {
				t.Errorf("%s is refused: %v", command, p)
			}
		}
	}
}

func TestJoinCommandIsSplitBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOf(rapid.StringMatching(`[a-zA-Z0-9 '"\\$&|;<>(){}\n\t训=*~-]*`)).Draw(t, "words")
		got, err := SplitCommand(JoinCommand(words))
		if err != nil {
			t.Fatalf("split %q: %v", JoinCommand(words), err)
		}
		if !slices.Equal(words, got) {
			t.Fatalf("join of %q was split into %q", words, got)
		}
	})
}

// TestSplitCommandIsWhatAShellDoes compares with a real shell, the slow
// obvious twin, on commands that hold nothing but words and quotes.
func TestSplitCommandIsWhatAShellDoes(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatalf("find a shell: %v", err)
	}
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "B", "1", " ", "  ", "\t", "'", `"`, `\`, "\\\n", `\"`, "=", "-", "训"}), 0, 12).Draw(t, "parts")
		command := strings.Join(parts, "")
		scan, err := scanCommand(command, nil)
		if err != nil || scan.statement != "" {
			return // a shell would wait for more, or run two commands
		}
		words := scan.texts()
		out, err := exec.Command(sh, "-c", "printf '%s\\0' word "+command).Output()
		if err != nil {
			t.Fatalf("run %q: %v", command, err)
		}
		want := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")[1:]
		if !slices.Equal(words, want) {
			t.Fatalf("%q: we split into %q, sh into %q", command, words, want)
		}
	})
}

func FuzzSplitCommand(f *testing.F) {
	for _, seed := range []string{"", "a b", `bash -c "A=1 b && c"`, `'`, `"\`, "a\\\nb", "${", "${A}$(b)`", "\xff\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, command string) {
		words, err := SplitCommand(command)
		if err != nil {
			return
		}
		again, err := SplitCommand(JoinCommand(words))
		if err != nil || !slices.Equal(words, again) {
			t.Fatalf("%q: %q became %q, %v", command, words, again, err)
		}
		total := 0
		for _, word := range words {
			total += len(word)
		}
		if total > len(command) {
			t.Fatalf("%q: words are longer than the command: %q", command, words)
		}
		job := &Job{Name: "a", Task: Task{Command: command}}
		job.SetDefaults()
		job.Validate()
		job.Warnings()
	})
}

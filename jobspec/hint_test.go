package jobspec

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"nomadlike/nomadlike/structs"
)

// pasted returns what every hint for a command says to write, as the job file
// reads it.
func pasted(t interface{ Fatalf(string, ...any) }, command string) []string {
	job := &structs.Job{Name: "a", Task: structs.Task{Command: command}}
	job.SetDefaults()
	var commands []string
	for _, problem := range append(job.Validate(), job.Warnings()...) {
		line := problem.Params["rewrite"]
		if line == "" {
			continue
		}
		again, _, diags := Parse("job.hcl", []byte("job \"a\" {\n  task {\n    "+line+"\n  }\n}\n"), Options{})
		if again == nil {
			t.Fatalf("%q: the hint %s does not survive pasting: %v", command, line, diags)
		}
		commands = append(commands, again.Task.Command)
	}
	return commands
}

// TestHintsSurvivePasting writes every hint back into a job file: its shell is
// handed what was typed.
func TestHintsSurvivePasting(t *testing.T) {
	t.Parallel()
	for _, command := range []string{
		`cd /data && python train.py`, `echo "a" && echo 'b'`, `echo ${HOME:-/root}`, `echo $(hostname) 'x'`, `A=1 python "t.py"`,
		"python a.py\npython b.py", `a "%{x}" | b '$${y}' \\ \"`, `python *.py`, `A=1 python $${B} 'c'`,
	} {
		hints := pasted(t, command)
		if len(hints) == 0 {
			t.Errorf("%q has no hint", command)
		}
		for _, hint := range hints {
			words, err := structs.SplitCommand(hint)
			if err != nil || len(words) != 3 || words[2] != command {
				t.Errorf("%q: the hint gives %q, %v", command, words, err)
			}
		}
	}
}

// TestHintsOfAnyCommandSurvivePasting does the same for what nobody thought of.
func TestHintsOfAnyCommandSurvivePasting(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", " ", "'", `"`, `\`, "$", "{", "}", "%", "$X", "${Y}", "&&", ";", "\n", "`", "(", "*", "A=1 ", "训", "!"}), 1, 14).Draw(t, "parts")
		command := strings.TrimSpace(strings.Join(parts, ""))
		for _, hint := range pasted(t, command) {
			if words, err := structs.SplitCommand(hint); err != nil || len(words) != 3 || words[2] != command {
				t.Fatalf("%q: the hint gives %q, %v", command, words, err)
			}
		}
	})
}

// TestShellsAreNotWrappedTwice: a hint never puts a shell into a shell.
func TestShellsAreNotWrappedTwice(t *testing.T) {
	t.Parallel()
	for _, command := range []string{`bash -c "a" && b`, `cd x; bash -lc 'b'`, `bash -c "a" > log`, `bash -c a *.txt`, `A=1 bash -c "b $A"`} {
		for _, hint := range pasted(t, command) {
			if strings.Count(hint, "bash") > 1 {
				t.Errorf("%q: the hint gives %q", command, hint)
			}
		}
	}
	if hints := pasted(t, `A=1 bash -c "b $A"`); len(hints) != 1 || hints[0] != `env A=1 bash -c "b $A"` {
		t.Errorf("a variable before a shell: %q", hints)
	}
}

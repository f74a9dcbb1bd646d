package command

import (
	"errors"
	"flag"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nomadlike/nomadlike/structs"
)

// sampleFlags are flags of every kind.
type sampleFlags struct {
	yes  *bool
	n    *int
	text *string
	list listFlag
	span *spanFlag
}

func declareSample() (*flag.FlagSet, *sampleFlags) {
	set := flag.NewFlagSet("sample", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	f := &sampleFlags{yes: set.Bool("yes", false, ""), n: set.Int("n", 7, ""), text: set.String("text", "", "")}
	set.Var(&f.list, "list", "")
	f.span = declareSpan(set, "span", time.Hour, "")
	return set, f
}

func TestParseFlags(t *testing.T) {
	cases := []struct {
		name, line string
		stopAt     int
		want       string // what is left, separated by blanks
		yes        bool
		n          int
		text, list string
		span       structs.Duration
	}{
		{name: "nothing", n: 7},
		{name: "before arguments", line: "-yes -n 3 a b", want: "a b", yes: true, n: 3},
		{name: "after and between arguments", line: "a -n 3 b --yes", want: "a b", yes: true, n: 3},
		{name: "equals signs", line: "-n=3 --text=x=y -yes=true a", want: "a", yes: true, n: 3, text: "x=y"},
		{name: "a switch takes no following word", line: "-yes false", want: "false", yes: true, n: 7},
		{name: "a switch that is switched off", line: "-yes -yes=false", n: 7},
		{name: "two dashes end the flags", line: "a -- -n 3", want: "a -n 3", n: 7},
		{name: "two dashes as a value", line: "-text -- -n 3", text: "--", n: 3},
		{name: "a dash is an argument", line: "- -n 3", want: "-", n: 3},
		{name: "lists", line: "-list a -list b=c", list: "a,b=c", n: 7},
		{name: "an empty value", line: "-text= a", want: "a", n: 7},
		{name: "spans with days", line: "-span 2d", n: 7, span: structs.Duration(48 * time.Hour)},
		{name: "what follows the first argument belongs to it", line: "-n 3 job ls -yes -- x", stopAt: 1, want: "job ls -yes -- x", n: 3},
		{name: "one pair of dashes in front of it is dropped", line: "job -- ls -yes", stopAt: 1, want: "job ls -yes", n: 7},
		{name: "dashes before it too", line: "-- job -yes", stopAt: 1, want: "job -yes", n: 7},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			set, f := declareSample()
			left, err := parseFlags(set, strings.Fields(c.line), c.stopAt)
			if err != nil {
				t.Fatal(err)
			}
			if c.span == 0 {
				c.span = structs.Duration(time.Hour)
			}
			if got := strings.Join(left, " "); got != c.want {
				t.Errorf("left %q, want %q", got, c.want)
			}
			got := []any{*f.yes, *f.n, *f.text, f.list.String(), f.span.value}
			if diff := cmp.Diff([]any{c.yes, c.n, c.text, c.list, c.span}, got); diff != "" {
				t.Errorf("flags (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseFlagsComplains(t *testing.T) {
	cases := []struct{ line, id, params string }{
		{"-nn 3", "cli.unknown_flag_near", "flag nn near n"},
		{"-frobnicate", "cli.unknown_flag", "flag frobnicate"},
		{"-n", "cli.flag_needs_value", "flag n"},
		{"-n x", "cli.flag_bad_value", "flag n value x kind NUMBER"},
		{"-n=", "cli.flag_bad_value", "flag n value  kind NUMBER"},
		{"-yes=maybe", "cli.flag_bad_value", "flag yes value maybe kind true|false"},
		{"-span 5", "cli.bad_span", "value 5"},
		{"-=x", "cli.unknown_flag", "flag "},
		{"---n 3", "cli.unknown_flag_near", "flag -n near n"},
	}
	for _, c := range cases {
		set, _ := declareSample()
		_, err := parseFlags(set, strings.Split(c.line, " "), 0)
		var told *usageError
		if !errors.As(err, &told) {
			t.Errorf("%s: %v", c.line, err)
			continue
		}
		var params []string
		for _, p := range told.params {
			params = append(params, p.(string))
		}
		if got := strings.Join(params, " "); told.id != c.id || got != c.params {
			t.Errorf("%s: %s %s, want %s %s", c.line, told.id, got, c.id, c.params)
		}
	}
	for _, line := range []string{"-h", "--help", "a -help"} {
		set, _ := declareSample()
		if _, err := parseFlags(set, strings.Fields(line), 0); !errors.Is(err, flag.ErrHelp) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// FuzzParseFlags: any command line is either understood or complained about,
// and no argument is lost or made up.
func FuzzParseFlags(f *testing.F) {
	for _, seed := range []string{"-yes a -n 3", "-- -x", "a -text=b -", "-list x -list", "--", "-=-"} {
		f.Add(seed, 0)
		f.Add(seed, 1)
	}
	f.Fuzz(func(t *testing.T, line string, stopAt int) {
		args := strings.Fields(line)
		set, _ := declareSample()
		left, err := parseFlags(set, args, max(0, stopAt%3))
		if err != nil {
			return
		}
		at := 0
		for _, word := range left {
			for at < len(args) && args[at] != word {
				at++
			}
			if at == len(args) {
				t.Fatalf("%q is left of %q", left, args)
			}
			at++
		}
	})
}

// TestVerbsAreWhole: every verb has a summary and texts for its flags, flags
// do not collide, and no verb hides another.
func TestVerbsAreWhole(t *testing.T) {
	seen := make(map[string]bool)
	for _, v := range verbs() {
		if seen[v.path] {
			t.Errorf("%s stands twice", v.path)
		}
		seen[v.path] = true
		if v.hidden {
			continue
		}
		found, rest, ok := find(strings.Fields(v.path))
		if !ok || found.path != v.path || len(rest) > 0 {
			t.Errorf("%s is not found", v.path)
		}
		for _, f := range flagsOf(v) {
			if !strings.HasPrefix(f.Usage, "cli.flag.") {
				t.Errorf("%s -%s has no text", v.path, f.Name)
			}
		}
	}
}

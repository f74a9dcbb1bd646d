package command

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSuggest(t *testing.T) {
	cases := []struct{ typed, wrong, near string }{
		{"job rnu x.hcl", "job rnu", "job run"},
		{"jbo run x.hcl", "jbo run", "job run"},
		{"job rnu -detach x", "job rnu", "job run"},
		{"run x.hcl", "run", "job run"},
		{"stauts", "stauts", "job status"},
		{"quueue", "quueue", "queue"},
		{"members", "members", "server members"},
		{"operator raft remove-per", "operator raft remove-per", "operator raft remove-peer"},
		{"token joni create", "token joni create", "token join create"},
		{"frobnicate everything now", "frobnicate everything", ""},
		{"job frobnicate x", "job frobnicate", ""},
		{"job drain x", "job drain", "node drain"},
		{"node list", "node list", "node status"},
		{"node ls -json", "node ls", "node status"},
		{"job cancel x", "job cancel", "job stop"},
		{"job submit x.hcl", "job submit", "job run"},
		{"sbatch x.sh", "sbatch", "job run"},
		{"squeue -u me", "squeue", "queue"},
		{"sinfo", "sinfo", "node status"},
		{"port-forward train7 8080", "port-forward", "job forward"},
		{"job port-forward train7 8080", "job port-forward", "job forward"},
		{"-x", "-x", ""},
		{"", "", ""},
	}
	for _, c := range cases {
		wrong, near := suggest(strings.Fields(c.typed))
		if wrong != c.wrong || near != c.near {
			t.Errorf("%q: %q near %q, want %q near %q", c.typed, wrong, near, c.wrong, c.near)
		}
	}
}

// TestElsewhere keeps what other systems' words are told to be among the verbs.
func TestElsewhere(t *testing.T) {
	for word, meant := range elsewhere {
		for _, path := range meant {
			if !strings.Contains(path, " ") && path != "queue" {
				path = " " + path
			}
			if !slices.ContainsFunc(matching(""), func(v verb) bool { return strings.HasSuffix(" "+v.path, path) }) {
				t.Errorf("%s is told to be %q, which is no command", word, path)
			}
		}
	}
}

func TestNearest(t *testing.T) {
	words := []string{"status", "stop", "state", "run"}
	cases := []struct{ typed, want string }{
		{"stauts", "status"},
		{"sotp", "stop"},
		{"stat", "state"},
		{"rn", "run"},
		{"nomad", ""},
		{"", ""},
		{strings.Repeat("x", 100_000), ""},
	}
	for _, c := range cases {
		if got := nearest(c.typed, words); got != c.want {
			t.Errorf("%.20q: %q, want %q", c.typed, got, c.want)
		}
	}
	if words[0] != "status" {
		t.Error("nearest changed its argument")
	}
}

// slowDistance is distance by its definition.
func slowDistance(a, b string) int {
	switch {
	case a == "":
		return len(b)
	case b == "":
		return len(a)
	}
	cost := 1
	if a[0] == b[0] {
		cost = 0
	}
	least := min(slowDistance(a[1:], b[1:])+cost, slowDistance(a[1:], b)+1, slowDistance(a, b[1:])+1)
	if len(a) > 1 && len(b) > 1 && a[0] == b[1] && a[1] == b[0] {
		least = min(least, slowDistance(a[2:], b[2:])+1)
	}
	return least
}

func TestDistance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching("[abc]{0,6}")
		a, b, limit := word.Draw(t, "a"), word.Draw(t, "b"), rapid.IntRange(1, 8).Draw(t, "limit")
		if got, want := distance(a, b, limit), min(slowDistance(a, b), limit); got != want {
			t.Fatalf("distance(%q, %q) = %d, want %d", a, b, got, want)
		}
		if distance(a, b, 100) != distance(b, a, 100) {
			t.Fatal("not symmetric")
		}
	})
}

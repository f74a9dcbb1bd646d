package structs

import (
	"slices"
	"strings"
	"testing"
)

func TestSSHHosts(t *testing.T) {
	for _, bad := range []string{
		"", ".nomadlike", "train", "train.nomadlike.", "a b.nomadlike", "x\ny.nomadlike", "-x'.nomadlike'", "rank.train.nomadlike", "rank1.nomadlike.train",
		"rank-1.train.nomadlike", "rank01.train.nomadlike", "rank1.rank2.train.nomadlike", "sub1.rank1.train.nomadlike", "attempt0.train.nomadlike",
		"rank99999999999999999999.train.nomadlike", "x1.train.nomadlike", "rank1..nomadlike", "rank1..train.nomadlike",
		strings.Repeat("a", 300) + ".nomadlike", "$(reboot).nomadlike", "train;x.nomadlike", "tr\u00e4in.nomadlike",
	} {
		if got, err := ParseSSHHost(bad); err == nil {
			t.Errorf("%q names %+v", bad, got)
		}
	}
	for host, want := range map[string]SSHTarget{
		"train7.nomadlike":                     {Job: "train7"},
		"TRAIN7.nomadlike":                     {Job: "train7"},
		"rank2.train7.nomadlike":               {Job: "train7", Rank: 2},
		"rank2.sub1.attempt3.train7.nomadlike": {Job: "train7", Rank: 2, Subjob: 1, Attempt: 3},
		"rank0.train7.nomadlike":               {Job: "train7"},
		"attempt1.0a1b.nomadlike":              {Job: "0a1b", Attempt: 1},
	} {
		if got, err := ParseSSHHost(host); err != nil || got != want {
			t.Errorf("%s names %+v, %v, want %+v", host, got, err, want)
		}
	}
	first := &Allocation{JobName: "train7", JobID: "0a1b", Attempt: 2}
	for _, host := range []string{"train7.nomadlike", "rank0.train7.nomadlike", "rank0.sub0.attempt2.0a1b.nomadlike"} {
		if !slices.Contains(first.SSHHosts(), host) {
			t.Errorf("%s is no name of rank 0", host)
		}
	}
	second := &Allocation{JobName: "train7", JobID: "0a1b", Attempt: 2, Rank: 1, Subjob: 1}
	if hosts := second.SSHHosts(); slices.Contains(hosts, "train7.nomadlike") || slices.Contains(hosts, "rank1.train7.nomadlike") || !slices.Contains(hosts, "rank1.sub1.train7.nomadlike") {
		t.Errorf("another rank is called %v", hosts)
	}
}

func FuzzParseSSHHost(f *testing.F) {
	f.Add("rank2.sub1.attempt3.train7.nomadlike")
	f.Add("x\n.nomadlike")
	f.Fuzz(func(t *testing.T, host string) {
		target, err := ParseSSHHost(host)
		if err != nil {
			return
		}
		if again, err := ParseSSHHost(target.Host()); err != nil || again != target {
			t.Errorf("%q is %+v, spelt %q, which is %+v, %v", host, target, target.Host(), again, err)
		}
		if strings.ContainsAny(target.Host(), " \t\n\r'\"$;|&`\\*?") {
			t.Errorf("%q is spelt %q", host, target.Host())
		}
	})
}

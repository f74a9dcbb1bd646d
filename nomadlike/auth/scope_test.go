package auth

import (
	"strings"
	"testing"

	"nomadlike/nomadlike/structs"
)

func TestScopesThatMayBe(t *testing.T) {
	for _, test := range []struct {
		verbs, addresses string
		want             string
	}{
		{"", "", ""},
		{"submit read list", "10.0.0.0/8 192.0.2.7 2001:db8::/32 ::1", ""},
		{"submit fly", "", "auth.scope_verb"},
		{"", "10.0.0.0/33", "auth.scope_address"},
		{"", "gpu-head", "auth.scope_address"},
		{"", "10.0.0", "auth.scope_address"},
		{"", "fe80::1%eth0", "auth.scope_address"},
		{"", "::ffff:10.0.0.0/104", "auth.scope_address"},
		{strings.Repeat("read ", structs.TokenVerbsMax+1), "", "job.too_many"},
		{"", strings.Repeat("10.0.0.1 ", structs.TokenAddressesMax+1), "job.too_many"},
	} {
		got := ""
		if problem := ScopeProblem(strings.Fields(test.verbs), strings.Fields(test.addresses)); problem != nil {
			got = problem.ID
		}
		if got != test.want {
			t.Errorf("%q from %q: %q, want %q", test.verbs, test.addresses, got, test.want)
		}
	}
}

func TestTokensAreGoodFromAddresses(t *testing.T) {
	token := &structs.Token{Addresses: []string{"10.1.0.0/16", "192.0.2.7", "2001:db8::/32"}}
	for address, want := range map[string]bool{
		"10.1.255.255": true, "10.2.0.0": false, "192.0.2.7": true, "192.0.2.8": false, "::ffff:10.1.0.1": true,
		"2001:db8:1::1": true, "2001:db9::1": false, "": false, "gpu-head": false, "10.1.0.1:22": false,
	} {
		if got := ReachesFrom(token, address); got != want {
			t.Errorf("from %q: %v", address, got)
		}
	}
	if !ReachesFrom(&structs.Token{}, "anything") {
		t.Error("a token without addresses is not good from everywhere")
	}
}

func TestTokensAreGoodForVerbs(t *testing.T) {
	token := &structs.Token{Verbs: []string{"submit", "read"}}
	for verb, want := range map[Verb]bool{VerbSubmit: true, VerbRead: true, VerbList: false, VerbStop: false, VerbSelf: true, VerbExec: false} {
		if Covers(token, verb) != want || !Covers(&structs.Token{}, verb) {
			t.Errorf("%s: %v", verb, !want)
		}
	}
}

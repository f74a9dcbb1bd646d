package firewall

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
)

func addr(text string) netip.Addr { return netip.MustParseAddr(text) }

func addrs(texts ...string) []netip.Addr {
	var all []netip.Addr
	for _, text := range texts {
		all = append(all, addr(text))
	}
	return all
}

func TestRules(t *testing.T) {
	here, there := Door{Addr: addr("10.0.0.1"), Port: 29500, Here: true}, Door{Addr: addr("10.0.0.2"), Port: 20001}
	for _, c := range []struct {
		name  string
		gangs map[string]Gang
		want  string
	}{
		{"nobody", nil, ""},
		{
			"rank 0 is here",
			map[string]Gang{"a": {User: 7, Doors: []Door{here}, From: addrs("10.0.0.2", "10.0.0.1")}},
			"port 29500 here: users 7, from 10.0.0.1 10.0.0.2\n",
		},
		{
			"rank 0 is elsewhere",
			map[string]Gang{"a": {User: 7, Doors: []Door{there}, From: addrs("10.0.0.2", "10.0.0.1")}},
			"10.0.0.2:20001: users 7\n",
		},
		{"addresses are not known", map[string]Gang{"a": {User: 7, Doors: []Door{here}}}, "port 29500 here: users 7\n"},
		{
			"two ranks of a gang",
			map[string]Gang{"a": {User: 7, Doors: []Door{here}, From: addrs("10.0.0.1")}, "b": {User: 7, Doors: []Door{here}, From: addrs("10.0.0.1")}},
			"port 29500 here: users 7, from 10.0.0.1\n",
		},
		{
			"one goes, another comes",
			map[string]Gang{"a": {User: 8, Doors: []Door{here}, From: addrs("10.0.0.3")}, "b": {User: 7, Doors: []Door{here}, From: addrs("10.0.0.1")}},
			"port 29500 here: users 7 8, from 10.0.0.1 10.0.0.3\n",
		},
		{
			"of one the addresses are not known",
			map[string]Gang{"a": {User: 8, Doors: []Door{here}}, "b": {User: 7, Doors: []Door{here}, From: addrs("10.0.0.1")}},
			"port 29500 here: users 7 8\n",
		},
		{
			"containers",
			map[string]Gang{"a": {AnyUser: true, Doors: []Door{here, there}, From: addrs("10.0.0.1")}, "b": {User: 7, Doors: []Door{here}, From: addrs("10.0.0.1")}},
			"port 29500 here: any user, from 10.0.0.1\n",
		},
		{
			"several gangs",
			map[string]Gang{"a": {User: 8, Doors: []Door{there, here}, From: addrs("fd00::2", "fd00::1")}, "b": {User: 7, Doors: []Door{{Addr: addr("10.0.0.2"), Port: 20000}}}},
			"port 29500 here: users 8, from fd00::1 fd00::2\n10.0.0.2:20000: users 7\n10.0.0.2:20001: users 8\n",
		},
	} {
		if got := String(Rules(c.gangs)); got != c.want {
			t.Errorf("%s:\n%swant\n%s", c.name, got, c.want)
		}
	}
}

func TestFirewallFollowsGangs(t *testing.T) {
	fake := &Fake{}
	f, err := Open(fake)
	if err != nil {
		t.Fatal(err)
	}
	want := func(rules string, steps int) {
		t.Helper()
		if got, made := fake.Rules(); got != rules || made != steps {
			t.Errorf("after %d steps:\n%swant, after %d:\n%s", made, got, steps, rules)
		}
	}
	gang := Gang{User: 7, Doors: []Door{{Port: 29500, Here: true}}, From: addrs("10.0.0.1")}
	for range 2 { // the second changes nothing
		if err := f.Enter("a", gang); err != nil {
			t.Fatal(err)
		}
	}
	want("port 29500 here: users 7, from 10.0.0.1\n", 1)
	if again, err := f.Restore(); again || err != nil {
		t.Errorf("kept %v, %v", again, err)
	}
	fake.Lose()
	want("", 1)
	if again, err := f.Restore(); !again || err != nil {
		t.Errorf("lost rules: %v, %v", again, err)
	}
	want("port 29500 here: users 7, from 10.0.0.1\n", 2)
	for range 2 {
		if err := f.Leave("a"); err != nil {
			t.Fatal(err)
		}
	}
	want("", 3)
	fake.Lose()
	if again, err := f.Restore(); again || err != nil {
		t.Errorf("without rules nothing is lost: %v, %v", again, err)
	}
	broken := errors.New("broken")
	fake.Fail(broken)
	if err := f.Enter("a", gang); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	fake.Fail(nil)
	if err := f.Settle(); err != nil {
		t.Error(err)
	}
	want("", 4) // as nothing had been set
	if err := f.Enter("b", gang); err != nil {
		t.Error(err)
	}
	want("port 29500 here: users 7, from 10.0.0.1\n", 5)

	next, err := Open(fake) // in the next process
	if err != nil {
		t.Fatal(err)
	}
	want("port 29500 here: users 7, from 10.0.0.1\n", 5)
	gang.Doors[0].Port = 29501
	for _, step := range []func() error{func() error { return next.Enter("c", gang) }, next.Settle, next.Settle} {
		if err := step(); err != nil {
			t.Error(err)
		}
	}
	want("port 29501 here: users 7, from 10.0.0.1\n", 8)
	if err := next.Close(); err != nil {
		t.Error(err)
	}
	want("port 29501 here: users 7, from 10.0.0.1\n", 8) // what runs stays kept
	if err := next.Leave("c"); err != nil {
		t.Error(err)
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
	if there, _ := fake.There(); there {
		t.Error("there is still something")
	}
	fake.Fail(broken)
	if _, err := Open(fake); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

// Whoever has entered is behind the rules when Enter returns, however many enter
// and leave at once.
func TestFirewallAtOnce(t *testing.T) {
	fake := &Fake{}
	f, err := Open(fake)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			id := fmt.Sprint(i)
			if err := f.Enter(id, Gang{User: uint32(i), Doors: []Door{{Port: uint16(1000 + i), Here: true}}}); err != nil {
				t.Error(err)
			}
			if rules, _ := fake.Rules(); !containsLine(rules, fmt.Sprintf("port %d here: users %d", 1000+i, i)) {
				t.Errorf("%d has entered and has no rule", i)
			}
			if err := f.Leave(id); err != nil {
				t.Error(err)
			}
			if rules, _ := fake.Rules(); containsLine(rules, fmt.Sprintf("port %d here: users %d", 1000+i, i)) {
				t.Errorf("%d has left and has a rule", i)
			}
		})
	}
	all.Wait()
}

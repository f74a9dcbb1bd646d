// Package firewall keeps the ports at which gangs meet for those gangs.
// Frameworks' rendezvous (torchrun's store, the coordinators of JAX and
// TensorFlow) ask nobody who they are, and the ranks of a gang over several nodes
// use the network of their nodes, so any task there could connect.
//
// Flow: the node enters each of its allocations whose gang meets at a port, and
// they leave with their ends; Firewall turns what is there into rules and has the
// kernel (Filter) replace the former ones in one step:
//
//	out   a connection to a port of a gang that has a rank here, by a user whom none of its ranks here runs as: refused
//	in    a connection to a port of a rank that is here, from an address of no node of its gang: refused
//
// So tasks of this node and of nodes that the gang is on are told apart by their
// users, which are of projects, and other nodes by their addresses. Only the first
// packet of a connection is looked at. Connections that carry Mark, of the agent's
// own looks, pass.
//
// Limits: tasks that run as the same user are not told apart, so neither are
// members of one project on the nodes of the gang. Gangs of containers and of root
// are kept by addresses alone: nobody knows which users they have. What frameworks open beside the rendezvous is not known here. TCP alone.
package firewall

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
)

// Mark is the SO_MARK of connections that pass: setting it takes CAP_NET_ADMIN,
// which tasks do not have.
const Mark = 0x6e6c6667

// Gang is what the firewall needs to know of a gang with a rank on this node.
type Gang struct {
	User    uint32 // whom its rank here runs as
	AnyUser bool   // it may become another user, as containers and root may: nobody is refused by his user
	Doors   []Door
	// From are all addresses of the nodes of the gang. Empty: they are not known, and
	// nobody is refused by his address.
	From []netip.Addr
}

// Door is a port at which ranks of a gang meet.
type Door struct {
	Addr netip.Addr // of the node where it is
	Port uint16
	Here bool // on this node, whatever its address
}

// Rule refuses connections to one door.
type Rule struct {
	Door
	Users []uint32     // who may connect from this node, in order; nil: everybody
	From  []netip.Addr // who may connect to this node, in order; nil: everybody
}

// Filter is the kernel's packet filter.
type Filter interface {
	// There reports whether there is something of this filter: what Replace has set,
	// here or in an earlier process, and nobody has removed. An error says that
	// there can be nothing.
	There() (bool, error)
	// Replace puts rules in the place of all that was set before, in one step; it sets
	// none of them when it fails.
	Replace(rules []Rule) error
	// Remove takes away everything.
	Remove() error
}

// Firewall holds the gangs of one node. Its methods may be called by everybody at
// any time.
type Firewall struct {
	filter Filter

	mu struct {
		sync.Mutex
		gangs  map[string]Gang // by allocation
		change uint64          // of gangs, counted
	}
	setting struct {
		sync.Mutex
		change uint64 // of the gangs that the filter has
		some   bool   // rules, or what an earlier process has left
		err    error
	}
}

// Open returns a firewall without gangs, and an error where there can be none. It
// sets nothing: the rules of an earlier process stay until Settle or the first Enter.
func Open(filter Filter) (*Firewall, error) {
	f := &Firewall{filter: filter}
	f.mu.gangs = make(map[string]Gang)
	var err error
	f.setting.some, err = filter.There()
	return f, err
}

// Enter keeps the doors of an allocation's gang from when it returns until Leave.
// It may be repeated, with other values too.
func (f *Firewall) Enter(alloc string, gang Gang) error {
	f.mu.Lock()
	if old, ok := f.mu.gangs[alloc]; ok && old.equal(&gang) {
		f.mu.Unlock()
		return nil
	}
	f.mu.gangs[alloc] = gang
	f.mu.change++
	change := f.mu.change
	f.mu.Unlock()
	return f.set(change, false)
}

// Leave ends Enter. An allocation that has not entered leaves without a word.
func (f *Firewall) Leave(alloc string) error {
	f.mu.Lock()
	if _, ok := f.mu.gangs[alloc]; !ok {
		f.mu.Unlock()
		return nil
	}
	delete(f.mu.gangs, alloc)
	f.mu.change++
	change := f.mu.change
	f.mu.Unlock()
	return f.set(change, false)
}

// Settle takes away what an earlier process has left and nobody has entered again.
func (f *Firewall) Settle() error {
	f.setting.Lock()
	some := f.setting.some
	f.setting.Unlock()
	if !some {
		return nil
	}
	return f.set(0, true)
}

// Close removes the rules if there are no gangs; what goes on running stays kept.
func (f *Firewall) Close() error {
	f.setting.Lock()
	defer f.setting.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.mu.gangs) > 0 {
		return nil
	}
	return f.filter.Remove()
}

// Restore sets the rules again when somebody has removed them, as those who load a
// firewall of their own do, and reports whether that was so.
func (f *Firewall) Restore() (bool, error) {
	f.setting.Lock()
	some := f.setting.some
	f.setting.Unlock()
	if !some {
		return false, nil
	}
	if there, err := f.filter.There(); err != nil || there {
		return false, err
	}
	return true, f.set(0, true)
}

// set has the filter follow the gangs up to a change. What others have entered
// meanwhile goes with it, so that many starts at once take few steps.
func (f *Firewall) set(change uint64, anyway bool) error {
	f.setting.Lock()
	defer f.setting.Unlock()
	if f.setting.change >= change && !anyway {
		return f.setting.err
	}
	f.mu.Lock()
	gangs := maps.Clone(f.mu.gangs)
	f.setting.change = f.mu.change
	f.mu.Unlock()
	rules := Rules(gangs)
	f.setting.err = f.filter.Replace(rules)
	f.setting.some = len(rules) > 0 && f.setting.err == nil
	return f.setting.err
}

func (g *Gang) equal(other *Gang) bool {
	return g.User == other.User && g.AnyUser == other.AnyUser && slices.Equal(g.Doors, other.Doors) && slices.Equal(g.From, other.From)
}

// Rules are the rules for gangs, by allocation, one for each door, in the order
// of the doors. Ranks of one gang share its doors; attempts of which one goes while
// the other comes may share them too. Pure.
func Rules(gangs map[string]Gang) []Rule {
	byDoor := make(map[Door]*Rule)
	for _, id := range slices.Sorted(maps.Keys(gangs)) {
		gang := gangs[id]
		for _, door := range gang.Doors {
			if door.Here {
				door.Addr = netip.Addr{}
			}
			rule, known := byDoor[door]
			if !known {
				rule = &Rule{Door: door, Users: []uint32{}, From: []netip.Addr{}}
				byDoor[door] = rule
			}
			switch {
			case gang.AnyUser:
				rule.Users = nil
			case rule.Users != nil:
				rule.Users = append(rule.Users, gang.User)
			}
			switch {
			case len(gang.From) == 0 || !door.Here:
				rule.From = nil
			case rule.From != nil:
				rule.From = append(rule.From, gang.From...)
			}
		}
	}
	rules := make([]Rule, 0, len(byDoor))
	for _, rule := range byDoor {
		if rule.Users == nil && rule.From == nil {
			continue
		}
		slices.Sort(rule.Users)
		rule.Users = slices.Compact(rule.Users)
		slices.SortFunc(rule.From, netip.Addr.Compare)
		rule.From = slices.Compact(rule.From)
		rules = append(rules, *rule)
	}
	slices.SortFunc(rules, func(a, b Rule) int {
		return cmp.Or(a.Addr.Compare(b.Addr), cmp.Compare(a.Port, b.Port))
	})
	return rules
}

// String writes rules for people, a line each.
func String(rules []Rule) string {
	var text strings.Builder
	for i := range rules {
		text.WriteString(rules[i].String() + "\n")
	}
	return text.String()
}

// String is a line such as "port 29500 here: users 20001, from 10.0.0.1 10.0.0.2".
func (r Rule) String() string {
	var text strings.Builder
	if r.Here {
		fmt.Fprintf(&text, "port %d here:", r.Port)
	} else {
		fmt.Fprintf(&text, "%s:", netip.AddrPortFrom(r.Addr, r.Port))
	}
	if r.Users == nil {
		text.WriteString(" any user")
	} else {
		text.WriteString(" users")
	}
	for _, user := range r.Users {
		fmt.Fprintf(&text, " %d", user)
	}
	if r.From != nil {
		text.WriteString(", from")
		for _, addr := range r.From {
			text.WriteString(" " + addr.String())
		}
	}
	return text.String()
}

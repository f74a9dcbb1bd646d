package firewall

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// NFTables is the kernel's nftables: a table of the node's own, with a chain for
// what leaves the node and one for what comes in. Rules in it can only refuse:
// whatever else filters packets on the machine goes on as it was.
//
// The chains are made once and never change; what changes is the content of the
// sets that they ask. Taking chains away costs the kernel a tenth of a second.
//
//	set          holds                     asked by
//	here         port                      out: to the machine itself
//	here_users   user, port
//	away4/6      address, port             out: to another machine
//	away4/6_users user, address, port
//	known        port                      in: from another machine
//	known4/6_from address, port
type NFTables struct {
	table *nftables.Table

	mu   sync.Mutex
	conn *nftables.Conn // nil before the first change, and after one that failed
	made bool
	has  map[string]map[string]bool // by set: keys
}

// Bounds of one exchange with the kernel, in bytes and elements. What the kernel
// says to many changes is more than the buffer that sockets have by default
// (google/nftables issues 103 and 350).
const (
	netlinkBuffer = 8 << 20
	setChunk      = 1000
)

// NewNFTables returns the filter of a node, whose id names its table. It does nothing
// before Replace.
func NewNFTables(nodeID string) *NFTables {
	return &NFTables{table: &nftables.Table{Name: "nomadlike_" + nodeID[:min(len(nodeID), 12)], Family: nftables.TableFamilyINet}}
}

// Replace implements Filter. The first call makes the table and drops what an
// earlier process has left in it; an error of it says that the kernel has no
// nftables, or that the agent may not use them.
func (n *NFTables) Replace(rules []Rule) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	want := contents(rules)
	if n.made {
		return n.change(want)
	}
	n.has = make(map[string]map[string]bool)
	if err := n.change(want, n.empty, n.chains); err != nil { // another version may have left something of another kind
		return n.change(want, n.remove, n.empty, n.chains)
	}
	return nil
}

// change has the kernel take steps, and then have the sets hold what they are to
// hold, all or nothing.
func (n *NFTables) change(want map[string]map[string]bool, steps ...func(*nftables.Conn) error) error {
	if err := n.dial(); err != nil {
		return err
	}
	for _, step := range steps {
		if err := step(n.conn); err != nil {
			return n.close(fmt.Errorf("write nftables: %w", err))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		if err := n.follow(n.conn, name, want[name]); err != nil {
			return n.close(fmt.Errorf("write nftables: %w", err))
		}
	}
	if err := n.conn.Flush(); err != nil {
		return n.close(fmt.Errorf("set nftables: %w", err))
	}
	n.made, n.has = true, want
	return nil
}

// Remove implements Filter.
func (n *NFTables) Remove() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.made {
		return nil
	}
	n.has = nil
	n.made = false
	if err := n.remove(n.conn); err != nil {
		return n.close(err)
	}
	if err := n.conn.Flush(); err != nil {
		return n.close(fmt.Errorf("remove nftables: %w", err))
	}
	return n.close(nil)
}

// There implements Filter. What is gone the next Replace makes anew.
func (n *NFTables) There() (bool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.dial(); err != nil {
		return false, err
	}
	tables, err := n.conn.ListTablesOfFamily(n.table.Family)
	if err != nil {
		return false, n.close(fmt.Errorf("list nftables: %w", err))
	}
	there := slices.ContainsFunc(tables, func(t *nftables.Table) bool { return t.Name == n.table.Name })
	n.made = n.made && there
	return there, nil
}

// dial opens a connection to the kernel, which stays open: closing one waits until
// the kernel has tidied up what was deleted.
func (n *NFTables) dial() error {
	if n.conn != nil {
		return nil
	}
	conn, err := nftables.New(nftables.AsLasting(), nftables.WithSockOptions(
		func(c *netlink.Conn) error { return c.SetReadBuffer(netlinkBuffer) },
		func(c *netlink.Conn) error { return c.SetWriteBuffer(netlinkBuffer) },
	))
	if err != nil {
		return fmt.Errorf("open nftables: %w", err)
	}
	n.conn = conn
	return nil
}

// close drops the connection, after an error too: answers may still be on their
// way, and nothing is known of what is there.
func (n *NFTables) close(err error) error {
	n.made = false
	conn := n.conn
	n.conn = nil
	return errors.Join(err, conn.CloseLasting())
}

// sets are the sets of the table and what their keys consist of.
var sets = map[string]nftables.SetDatatype{
	"here":        nftables.TypeInetService,
	"here_users":  nftables.MustConcatSetType(nftables.TypeUID, nftables.TypeInetService),
	"away4":       nftables.MustConcatSetType(nftables.TypeIPAddr, nftables.TypeInetService),
	"away4_users": nftables.MustConcatSetType(nftables.TypeUID, nftables.TypeIPAddr, nftables.TypeInetService),
	"away6":       nftables.MustConcatSetType(nftables.TypeIP6Addr, nftables.TypeInetService),
	"away6_users": nftables.MustConcatSetType(nftables.TypeUID, nftables.TypeIP6Addr, nftables.TypeInetService),
	"known":       nftables.TypeInetService,
	"known4_from": nftables.MustConcatSetType(nftables.TypeIPAddr, nftables.TypeInetService),
	"known6_from": nftables.MustConcatSetType(nftables.TypeIP6Addr, nftables.TypeInetService),
}

func (n *NFTables) set(name string) *nftables.Set {
	return &nftables.Set{Table: n.table, Name: name, KeyType: sets[name], Concatenation: sets[name].Name != nftables.TypeInetService.Name}
}

// contents are the keys of each set for rules. Pure.
func contents(rules []Rule) map[string]map[string]bool {
	want := make(map[string]map[string]bool, len(sets))
	for name := range sets {
		want[name] = make(map[string]bool)
	}
	for i := range rules {
		r := &rules[i]
		port := binary.BigEndian.AppendUint16(nil, r.Port)
		padded := append(slices.Clip(port), 0, 0) // parts of a key fill whole registers
		doors, users, place := "here", "here_users", []byte(nil)
		key := port
		if !r.Here {
			doors, users, place = "away6", "away6_users", r.Addr.AsSlice()
			if r.Addr.Is4() {
				doors, users = "away4", "away4_users"
			}
			key = slices.Concat(place, padded)
		}
		if r.Users != nil {
			want[doors][string(key)] = true
		}
		for _, user := range r.Users {
			want[users][string(slices.Concat(binary.NativeEndian.AppendUint32(nil, user), place, padded))] = true
		}
		if r.From == nil {
			continue
		}
		want["known"][string(port)] = true
		for _, addr := range r.From {
			from := "known6_from"
			if addr.Is4() {
				from = "known4_from"
			}
			want[from][string(append(addr.AsSlice(), padded...))] = true
		}
	}
	return want
}

// follow changes a set from what it has to what it is to have.
func (n *NFTables) follow(conn *nftables.Conn, name string, want map[string]bool) error {
	set, has := n.set(name), n.has[name]
	change := func(from, to map[string]bool, apply func(*nftables.Set, []nftables.SetElement) error) error {
		var elements []nftables.SetElement
		for key := range to {
			if !from[key] {
				elements = append(elements, nftables.SetElement{Key: []byte(key)})
			}
		}
		for chunk := range slices.Chunk(elements, setChunk) {
			if err := apply(set, chunk); err != nil {
				return err
			}
		}
		return nil
	}
	return errors.Join(change(want, has, conn.SetDeleteElements), change(has, want, conn.SetAddElements))
}

// remove deletes the table if there is one.
func (n *NFTables) remove(conn *nftables.Conn) error {
	conn.AddTable(n.table)
	conn.DelTable(n.table)
	return nil
}

// hooks are the chains without rules.
func (n *NFTables) hooks() (out, in *nftables.Chain) {
	policy := nftables.ChainPolicyAccept
	hook := func(name string, at *nftables.ChainHook) *nftables.Chain {
		return &nftables.Chain{Name: name, Table: n.table, Type: nftables.ChainTypeFilter, Hooknum: at, Priority: nftables.ChainPriorityFilter, Policy: &policy}
	}
	return hook("out", nftables.ChainHookOutput), hook("in", nftables.ChainHookInput)
}

// empty makes the table, its chains and its sets, all empty. Those that are there
// are emptied: sets by making them anew, for flushing one may leave something in it
// (google/nftables issue 305).
func (n *NFTables) empty(conn *nftables.Conn) error {
	conn.AddTable(n.table)
	out, in := n.hooks()
	for _, chain := range []*nftables.Chain{out, in} {
		conn.AddChain(chain)
		conn.FlushChain(chain)
	}
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		if err := conn.AddSet(n.set(name), nil); err != nil {
			return err
		}
		conn.DelSet(n.set(name))
		if err := conn.AddSet(n.set(name), nil); err != nil {
			return err
		}
	}
	return nil
}

// chains writes the rules.
func (n *NFTables) chains(conn *nftables.Conn) error {
	out, in := n.hooks()
	fill := func(chain *nftables.Chain, rules ...[]expr.Any) {
		for _, rule := range rules {
			conn.AddRule(&nftables.Rule{Table: n.table, Chain: chain, Exprs: rule})
		}
	}
	four, six := family{unix.NFPROTO_IPV4, 12, 16, 1}, family{unix.NFPROTO_IPV6, 8, 24, 4}
	here, away := outBy(expr.CmpOpEq), outBy(expr.CmpOpNeq)
	fill(out, accept(notTCP()), accept(notOpening()), accept(marked()),
		refuse(here, port(0), among("here"), user(), port(1), notAmong("here_users")),
		refuse(away, four.is(), four.to(0), port(four.words), among("away4"), user(), four.to(1), port(1+four.words), notAmong("away4_users")),
		refuse(away, six.is(), six.to(0), port(six.words), among("away6"), user(), six.to(1), port(1+six.words), notAmong("away6_users")))
	fill(in, accept(notTCP()), accept(notOpening()), accept(inByLoopback()), accept(port(0), notAmong("known")),
		refuse(four.is(), four.from(0), port(four.words), notAmong("known4_from")),
		refuse(six.is(), six.from(0), port(six.words), notAmong("known6_from")))
	return nil
}

// accept ends the chain for packets that match; other chains see them still.
func accept(match ...[]expr.Any) []expr.Any {
	return append(slices.Concat(match...), &expr.Verdict{Kind: expr.VerdictAccept})
}

// refuse answers packets that match as a port at which nobody listens would.
func refuse(match ...[]expr.Any) []expr.Any {
	return append(slices.Concat(match...), &expr.Reject{Type: unix.NFT_REJECT_TCP_RST})
}

// word is the register of 32 bits in which a part of a key begins.
func word(at int) uint32 { return unix.NFT_REG32_00 + uint32(at) }

func compare(op expr.CmpOp, data ...byte) expr.Any {
	return &expr.Cmp{Op: op, Register: word(0), Data: data}
}

func notTCP() []expr.Any {
	return []expr.Any{&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: word(0)}, compare(expr.CmpOpNeq, unix.IPPROTO_TCP)}
}

// TCP's flags, RFC 9293 section 3.1.
const (
	tcpSyn = 0x02
	tcpAck = 0x10
)

// notOpening matches all TCP packets but the first of a connection.
func notOpening() []expr.Any {
	return []expr.Any{
		&expr.Payload{DestRegister: word(0), Base: expr.PayloadBaseTransportHeader, Offset: 13, Len: 1},
		&expr.Bitwise{SourceRegister: word(0), DestRegister: word(0), Len: 1, Mask: []byte{tcpSyn | tcpAck}, Xor: []byte{0}},
		compare(expr.CmpOpNeq, tcpSyn),
	}
}

// marked matches connections with Mark. The kernel keeps such numbers, and users,
// in the machine's own order of bytes.
func marked() []expr.Any {
	return []expr.Any{&expr.Meta{Key: expr.MetaKeyMARK, Register: word(0)}, compare(expr.CmpOpEq, binary.NativeEndian.AppendUint32(nil, Mark)...)}
}

// outBy matches what goes out by the loopback interface, or what does not: to any
// address of the machine itself packets go by it.
func outBy(op expr.CmpOp) []expr.Any {
	return []expr.Any{&expr.Meta{Key: expr.MetaKeyOIFNAME, Register: word(0)}, compare(op, loopback()...)}
}

func inByLoopback() []expr.Any {
	return []expr.Any{&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: word(0)}, compare(expr.CmpOpEq, loopback()...)}
}

func loopback() []byte {
	name := make([]byte, unix.IFNAMSIZ)
	copy(name, "lo")
	return name
}

// port puts the port to which a connection goes into a key.
func port(at int) []expr.Any {
	return []expr.Any{&expr.Payload{DestRegister: word(at), Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2}}
}

// user puts the user of a connection's socket at the beginning of a key.
func user() []expr.Any {
	return []expr.Any{&expr.Meta{Key: expr.MetaKeySKUID, Register: word(0)}}
}

func among(set string) []expr.Any {
	return []expr.Any{&expr.Lookup{SourceRegister: word(0), SetName: set}}
}

func notAmong(set string) []expr.Any {
	return []expr.Any{&expr.Lookup{SourceRegister: word(0), SetName: set, Invert: true}}
}

// family is where IPv4 or IPv6 have their addresses.
type family struct {
	number       byte
	source, dest uint32 // offsets, RFC 791 section 3.1 and RFC 8200 section 3
	words        int    // of an address
}

func (f family) is() []expr.Any {
	return []expr.Any{&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: word(0)}, compare(expr.CmpOpEq, f.number)}
}

func (f family) from(at int) []expr.Any { return f.address(at, f.source) }

func (f family) to(at int) []expr.Any { return f.address(at, f.dest) }

func (f family) address(at int, offset uint32) []expr.Any {
	return []expr.Any{&expr.Payload{DestRegister: word(at), Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: uint32(4 * f.words)}}
}

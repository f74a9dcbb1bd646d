package server

import (
	"context"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// This file bounds what a node says of itself before it comes into the log. A
// node's agent may be in strange hands: what it costs the cluster is bounded in
// size, count and rate, and what people see of it is plain text.

// Bounds of what a node says.
const (
	registrationMax  = 256 << 10 // bytes of a node, its inventory not counted
	inventoryIDMax   = 128       // bytes of an id in it
	reportsBytesMax  = 4 << 20   // bytes of one batch of reports
	reportTextMax    = 4 << 10   // bytes of one text
	reportBurst      = 8 << 20   // bytes that a node may say at once
	reportRate       = 256 << 10 // and from then on
	registrationCost = 64 << 10  // bytes that a registration counts for at least: one is read by every server and every page
)

// allowances are what nodes may still say, in bytes, refilled with time. They
// outlive the streams of a node, so that a new one brings nothing.
type allowances struct {
	now func() time.Time

	mu struct {
		sync.Mutex
		byNode map[string]*allowance
		swept  time.Time // when those that are full again were forgotten last
	}
}

// saidRefill is how long an allowance takes to be full again.
const reportRefill = reportBurst / reportRate * time.Second

type allowance struct {
	bytes float64
	at    time.Time
}

// take uses bytes up, and returns how long the node must be silent for them.
func (a *allowances) take(node string, bytes int) time.Duration {
	now := a.now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.mu.byNode == nil {
		a.mu.byNode = make(map[string]*allowance)
	}
	one := a.mu.byNode[node]
	if one == nil {
		a.sweepLocked(now)
		one = &allowance{bytes: reportBurst, at: now}
		a.mu.byNode[node] = one
	}
	one.bytes = min(reportBurst, one.bytes+max(0, now.Sub(one.at).Seconds())*reportRate) - float64(bytes)
	one.at = now
	if one.bytes >= 0 {
		return 0
	}
	return time.Duration(-one.bytes / reportRate * float64(time.Second))
}

// sweepLocked forgets allowances that are full again: they are as good as new
// ones. Once in a while, since thousands of nodes may come at once.
func (a *allowances) sweepLocked(now time.Time) {
	if now.Sub(a.mu.swept) < reportRefill {
		return
	}
	a.mu.swept = now
	for name, other := range a.mu.byNode {
		if now.Sub(other.at) > reportRefill {
			delete(a.mu.byNode, name)
		}
	}
}

// allow waits until a node may say so many bytes more: its stream stands still
// meanwhile, but for heartbeats.
func (n *session) allow(ctx context.Context, bytes int) error {
	wait := n.sessions.allowances.take(n.nodeID, bytes)
	if wait <= 0 {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// newest leaves out registrations that a later one replaces before anybody has
// read them. Pure.
func newest(inbox []*structs.SessionUp) []*structs.SessionUp {
	kept := inbox[:0:0]
	for i, up := range inbox {
		if up.Hello != nil && i+1 < len(inbox) && inbox[i+1].Hello != nil {
			continue
		}
		kept = append(kept, up)
	}
	return kept
}

// checkHello bounds a registration, and returns what it costs.
func checkHello(hello *structs.NodeRegister) (bytes int, err error) {
	encoded, err := wire.Marshal(&hello.Node)
	if err != nil || len(encoded) > registrationMax {
		return 0, structs.NewError(structs.CodeTooLarge, "server.node_too_large", "node", hello.Node.ID, "bytes", len(encoded), "max", registrationMax).Because(err)
	}
	bytes = max(len(encoded), registrationCost)
	for _, item := range hello.Inventory {
		if len(item.AllocID) > inventoryIDMax {
			return 0, structs.NewError(structs.CodeTooLarge, "server.node_too_large", "node", hello.Node.ID, "bytes", len(item.AllocID), "max", inventoryIDMax)
		}
		bytes += len(item.AllocID)
	}
	return bytes, nil
}

// checkReports bounds a batch of reports, and returns what it costs.
func checkReports(nodeID string, batch *structs.ReportBatch) (bytes int, err error) {
	encoded, err := wire.Marshal(batch)
	if err != nil || len(encoded) > reportsBytesMax {
		return 0, structs.NewError(structs.CodeTooLarge, "server.node_too_large", "node", nodeID, "bytes", len(encoded), "max", reportsBytesMax).Because(err)
	}
	return len(encoded), nil
}

// plainNode makes the texts of a node harmless, whoever shows them: on
// terminals, in pages and in files for other programs. The node is changed in
// place but for what it points to, which is copied where it changes.
func plainNode(node *structs.Node) {
	for _, text := range []*string{&node.Addr, &node.RPCAddr, &node.Pool, &node.OwnPool, &node.Version} {
		*text = plain(*text)
	}
	node.Topology, node.Drivers = plainTexts(node.Topology), plainTexts(node.Drivers)
	node.Storages, node.Data = plainTexts(node.Storages), plainTexts(node.Data)
	node.Attributes = plainTable(node.Attributes)
	devices := make([]structs.Device, len(node.Devices))
	for i, d := range node.Devices {
		for _, text := range []*string{&d.Kind, &d.Model, &d.PCIBus, &d.LinkGroup, &d.Driver} {
			*text = plain(*text)
		}
		d.Attrs, d.Health = plainTable(d.Attrs), plainReason(d.Health)
		devices[i] = d
	}
	if len(devices) > 0 {
		node.Devices = devices
	}
	faults := make([]structs.NodeFault, len(node.Faults))
	for i, f := range node.Faults {
		f.Reason = plainReason(f.Reason)
		faults[i] = f
	}
	if len(faults) > 0 {
		node.Faults = faults
	}
}

// plainBatch does the same for reports and notes.
func plainBatch(batch *structs.ReportBatch) {
	for i := range batch.Reports {
		r := &batch.Reports[i]
		r.Step, r.Cause = plain(r.Step), plainReason(r.Cause)
	}
	for i := range batch.Notes {
		n := &batch.Notes[i]
		n.Evicted = plainReason(n.Evicted)
		if n.Told != nil {
			told := *n.Told
			told.Params, told.Seen = plainTable(told.Params), plainTable(told.Seen)
			n.Told = &told
		}
		if n.Hold != nil {
			hold := *n.Hold
			hold.Cause = plainReason(hold.Cause)
			n.Hold = &hold
		}
	}
}

// knownBatch takes from notes what some server does not know yet: it would stop at
// the entry.
func knownBatch(batch *structs.ReportBatch, protocol int) {
	for i := range batch.Notes {
		if protocol < wire.ProtocolIdle {
			batch.Notes[i].Idle = nil
		}
		if told := batch.Notes[i].Told; told != nil && protocol < wire.ProtocolTaskFaults && (told.Event == structs.EventDeviceFault || told.Event == structs.EventDeviceFaultShared) {
			batch.Notes[i].Told = nil // they would not make the event, and servers would differ
		}
	}
}

func plainReason(reason *structs.Reason) *structs.Reason {
	if reason == nil {
		return nil
	}
	return &structs.Reason{ID: plain(reason.ID), Params: plainTable(reason.Params)}
}

func plainTexts(texts []string) []string {
	for i, text := range texts {
		if plain(text) == text {
			continue
		}
		clean := append([]string(nil), texts...)
		for j := i; j < len(clean); j++ {
			clean[j] = plain(clean[j])
		}
		return clean
	}
	return texts
}

func plainTable(table map[string]string) map[string]string {
	for name, value := range table {
		if plain(name) == name && plain(value) == value {
			continue
		}
		clean := make(map[string]string, len(table))
		for name, value := range table {
			clean[plain(name)] = plain(value)
		}
		return clean
	}
	return table
}

// plain replaces what a terminal or a page would obey instead of showing it,
// and cuts what is too long. Line breaks and tabs stay: texts of faults have
// some. Pure.
func plain(text string) string {
	if len(text) > reportTextMax {
		text = text[:reportTextMax]
	}
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case r < 0x20, r >= 0x7f && r < 0xa0, // controls
			r == 0x061c, r == 0x200e, r == 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, // bidirectional
			r == 0x2028, r == 0x2029, r == 0xfeff:
			return utf8.RuneError
		}
		return r
	}, text)
}

// Package rdma reads network cards and their RDMA ports from sysfs, decides
// which interfaces a node's jobs should use, and reports when a link that worked
// is lost.
//
// Flow: Read gathers the state of all cards at the door; Nearest, Choose and
// Watch.Step are pure. client/fingerprint reads once in a while, registers the
// names as attributes of the node, and treats what Watch reports as the
// node's health; device plugins ask for the card nearest to a device.
//
// Limits: Linux; sysfs only, so no drivers or libraries of vendors are needed.
// Counters are those that every InfiniBand driver has.
package rdma

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"nomadlike/plugins/device/pcie"
)

// Limits of what is read.
const (
	cardsMax  = 64
	portsMax  = 64
	netsMax   = 256
	textBytes = 4096
)

// Inventory is what a node has of network.
type Inventory struct {
	Cards []Card `json:"cards,omitempty"` // by name
	Nets  []Net  `json:"nets,omitempty"`  // by name; those with hardware behind them, and bonds
}

// Card is an RDMA device, such as mlx5_0.
type Card struct {
	Name     string     `json:"name"`
	Firmware string     `json:"firmware,omitempty"`
	Board    string     `json:"board,omitempty"`
	Place    pcie.Place `json:"place"`
	Ports    []Port     `json:"ports,omitempty"` // by number
}

// Port is one port of an RDMA card.
type Port struct {
	Number    int               `json:"number"`
	State     string            `json:"state"`          // "ACTIVE", "DOWN", "INIT", …
	Physical  string            `json:"physical"`       // "LinkUp", "Disabled", "Polling", …
	LinkLayer string            `json:"link_layer"`     // "InfiniBand" or "Ethernet" (RoCE)
	Rate      float64           `json:"rate"`           // bits per second
	Counters  map[string]uint64 `json:"counters"`       // by the kernel's names
	Nets      []string          `json:"nets,omitempty"` // interfaces of this port
}

// Active reports whether the port can carry data.
func (p Port) Active() bool { return p.State == "ACTIVE" }

// Net is a network interface.
type Net struct {
	Name    string     `json:"name"`
	Up      bool       `json:"up"` // it has a carrier
	Speed   float64    `json:"speed,omitempty"`
	MTU     int        `json:"mtu,omitempty"`
	Place   pcie.Place `json:"place"`
	Card    string     `json:"card,omitempty"` // the RDMA card behind it
	IB      bool       `json:"ib,omitempty"`   // IP over InfiniBand
	Slaves  []string   `json:"slaves,omitempty"`
	Virtual bool       `json:"virtual,omitempty"` // no hardware of its own: a bond
}

// Read gathers everything below root, which is "/" but in tests. What cannot
// be read is left out; a machine without network cards has an empty inventory.
func Read(root string) Inventory {
	var inventory Inventory
	for _, name := range list(filepath.Join(root, "sys/class/infiniband"), cardsMax) {
		inventory.Cards = append(inventory.Cards, readCard(root, name))
	}
	for _, name := range list(filepath.Join(root, "sys/class/net"), netsMax) {
		if net, ok := readNet(root, name); ok {
			inventory.Nets = append(inventory.Nets, net)
		}
	}
	join(&inventory)
	return inventory
}

func readCard(root, name string) Card {
	dir := filepath.Join(root, "sys/class/infiniband", name)
	card := Card{Name: name, Firmware: text(dir, "fw_ver"), Board: text(dir, "board_id"), Place: place(root, filepath.Join(dir, "device"))}
	for _, number := range list(filepath.Join(dir, "ports"), portsMax) {
		port := filepath.Join(dir, "ports", number)
		n, err := strconv.Atoi(number)
		if err != nil {
			continue
		}
		read := Port{
			Number: n, State: afterColon(text(port, "state")), Physical: afterColon(text(port, "phys_state")),
			LinkLayer: text(port, "link_layer"), Rate: rate(text(port, "rate")), Counters: make(map[string]uint64),
		}
		for _, each := range counters() {
			if value, err := strconv.ParseUint(text(port, "counters/"+each), 10, 64); err == nil {
				read.Counters[each] = value
			}
		}
		for _, index := range list(filepath.Join(port, "gid_attrs/ndevs"), portsMax) {
			if net := text(port, "gid_attrs/ndevs/"+index); net != "" && !slices.Contains(read.Nets, net) {
				read.Nets = append(read.Nets, net)
			}
		}
		card.Ports = append(card.Ports, read)
	}
	slices.SortFunc(card.Ports, func(a, b Port) int { return a.Number - b.Number })
	return card
}

// counters are those that are worth looking at, by the kernel's names.
func counters() []string {
	return []string{
		"link_downed", "link_error_recovery", "symbol_error", "port_rcv_errors", "port_xmit_discards",
		"local_link_integrity_errors", "excessive_buffer_overrun_errors", "port_rcv_data", "port_xmit_data",
	}
}

func readNet(root, name string) (Net, bool) {
	dir := filepath.Join(root, "sys/class/net", name)
	if !exists(filepath.Join(dir, "device")) && !exists(filepath.Join(dir, "bonding")) {
		return Net{}, false // loopback, bridges, tunnels
	}
	return lookAt(root, name), true
}

// With returns an inventory to which an interface was added, whatever its kind,
// unless it is there already: for a job that depends on one. The given inventory is
// not changed. An interface that has vanished is not added.
func (i Inventory) With(root, name string) Inventory {
	if slices.ContainsFunc(i.Nets, func(n Net) bool { return n.Name == name }) || name == "" || strings.ContainsRune(name, '/') ||
		!exists(filepath.Join(root, "sys/class/net", name)) {
		return i
	}
	i.Nets = append(slices.Clip(i.Nets), lookAt(root, name))
	return i
}

func lookAt(root, name string) Net {
	dir := filepath.Join(root, "sys/class/net", name)
	hardware := exists(filepath.Join(dir, "device"))
	net := Net{Name: name, Up: text(dir, "carrier") == "1", IB: text(dir, "type") == "32", Virtual: !hardware, Place: pcie.Place{NUMA: -1}}
	if mbit, err := strconv.ParseInt(text(dir, "speed"), 10, 64); err == nil && mbit > 0 {
		net.Speed = float64(mbit) * 1e6
	}
	net.MTU, _ = strconv.Atoi(text(dir, "mtu")) // 0: not known
	if hardware {
		net.Place = place(root, filepath.Join(dir, "device"))
		if cards := list(filepath.Join(dir, "device/infiniband"), 1); len(cards) == 1 {
			net.Card = cards[0]
		}
	}
	if exists(filepath.Join(dir, "bonding")) {
		net.Slaves = strings.Fields(text(dir, "bonding/slaves"))
	}
	return net
}

// join tells ports the interfaces that share their PCI device, where the
// kernel does not name them itself.
func join(inventory *Inventory) {
	for i := range inventory.Cards {
		card := &inventory.Cards[i]
		for k := range card.Ports {
			port := &card.Ports[k]
			for _, net := range inventory.Nets {
				same := net.Card == card.Name && len(card.Ports) == 1
				if same && !slices.Contains(port.Nets, net.Name) {
					port.Nets = append(port.Nets, net.Name)
				}
			}
			slices.Sort(port.Nets)
		}
	}
	for i := range inventory.Nets {
		net := &inventory.Nets[i]
		for _, card := range inventory.Cards {
			for _, port := range card.Ports {
				if net.Card == "" && slices.Contains(port.Nets, net.Name) {
					net.Card = card.Name
				}
			}
		}
	}
}

// place finds the PCI device behind a sysfs "device" link.
func place(root, link string) pcie.Place {
	target, err := filepath.EvalSymlinks(link)
	if err != nil {
		return pcie.Place{NUMA: -1}
	}
	found, err := pcie.Read(root, filepath.Base(target))
	if err != nil {
		found.NUMA = -1
		if number, err := strconv.Atoi(text(target, "numa_node")); err == nil {
			found.NUMA = number
		}
	}
	return found
}

// rate reads "400 Gb/sec (4X NDR)" as bits per second.
func rate(text string) float64 {
	number, rest, _ := strings.Cut(text, " ")
	value, err := strconv.ParseFloat(number, 64)
	if err != nil || value < 0 {
		return 0
	}
	switch {
	case strings.HasPrefix(rest, "Gb/sec"):
		return value * 1e9
	case strings.HasPrefix(rest, "Mb/sec"):
		return value * 1e6
	}
	return 0
}

// afterColon reads "4: ACTIVE" as "ACTIVE".
func afterColon(text string) string {
	if _, word, found := strings.Cut(text, ":"); found {
		return strings.TrimSpace(word)
	}
	return text
}

func list(dir string, most int) []string {
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return nil
	}
	var names []string
	for _, entry := range entries[:min(len(entries), most)] {
		names = append(names, entry.Name())
	}
	return names
}

// text reads one short file; "" when it cannot be read.
func text(dir, name string) string {
	file, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return ""
	}
	defer file.Close()
	buffer := make([]byte, textBytes)
	n, err := file.Read(buffer)
	if err != nil {
		return "" // also: the carrier of an interface that is switched off
	}
	return strings.TrimSpace(string(buffer[:n]))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Nearest returns the card that is nearest to a device, an active one before
// one that is down, and how near it is. False: there is none.
func (i Inventory) Nearest(to pcie.Place) (Card, pcie.Distance, bool) {
	var best *Card
	bestDistance := pcie.System
	for k := range i.Cards {
		card := &i.Cards[k]
		distance := pcie.Between(to, card.Place)
		if best == nil || card.Active() && !best.Active() || card.Active() == best.Active() && distance < bestDistance {
			best, bestDistance = card, distance
		}
	}
	if best == nil {
		return Card{}, pcie.System, false
	}
	return *best, bestDistance, true
}

// Active reports whether any port of the card can carry data.
func (c Card) Active() bool { return slices.ContainsFunc(c.Ports, Port.Active) }

// RDMA reports whether the node has a working RDMA port.
func (i Inventory) RDMA() bool { return slices.ContainsFunc(i.Cards, Card.Active) }

// Choice names what jobs of a node should use.
type Choice struct {
	// Cards are the RDMA cards for NCCL_IB_HCA and its like, as "name:port",
	// those of the fastest fabric only. Empty: there is no RDMA.
	Cards []string `json:"cards,omitempty"`
	// RDMANets are the interfaces over these cards, for instance ib0.
	RDMANets []string `json:"rdma_nets,omitempty"`
	// Layer is the cards' link layer: "InfiniBand" or "Ethernet".
	Layer string `json:"layer,omitempty"`
	// Net is the interface for TCP: the fastest that is up and no part of a
	// bond. "": none with hardware.
	Net string `json:"net,omitempty"`
}

// Choose decides by state and speed. allowed, when not empty, holds name
// prefixes; only what begins with one of them is chosen. Names decide ties, so
// the choice is the same every time.
func (i Inventory) Choose(allowed []string) Choice {
	var choice Choice
	fits := func(name string) bool {
		return len(allowed) == 0 || slices.ContainsFunc(allowed, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
	}
	fastest, layer := 0.0, ""
	for _, card := range i.Cards {
		for _, port := range card.Ports {
			// InfiniBand goes before RoCE: its cards are there for nothing else.
			better := port.Rate > fastest || port.Rate == fastest && port.LinkLayer == "InfiniBand" && layer != "InfiniBand"
			if port.Active() && i.fitsCard(card, port, fits) && better {
				fastest, layer = port.Rate, port.LinkLayer
			}
		}
	}
	for _, card := range i.Cards {
		for _, port := range card.Ports {
			if port.Active() && i.fitsCard(card, port, fits) && port.Rate == fastest && port.LinkLayer == layer {
				choice.Cards = append(choice.Cards, card.Name+":"+strconv.Itoa(port.Number))
				choice.RDMANets = append(choice.RDMANets, port.Nets...)
				choice.Layer = layer
			}
		}
	}
	slices.Sort(choice.RDMANets)
	choice.RDMANets = slices.Compact(choice.RDMANets)
	choice.Net = i.chooseNet(fits)
	return choice
}

// fitsCard reports whether a card may be chosen, by its name or its interfaces'.
func (i Inventory) fitsCard(card Card, port Port, fits func(string) bool) bool {
	return fits(card.Name) || slices.ContainsFunc(port.Nets, fits)
}

func (i Inventory) chooseNet(fits func(string) bool) string {
	bonded := make(map[string]bool)
	speeds := make(map[string]float64)
	for _, net := range i.Nets {
		speeds[net.Name] = net.Speed
		for _, slave := range net.Slaves {
			bonded[slave] = true
		}
	}
	var usable []Net
	for _, net := range i.Nets {
		if net.Up && !bonded[net.Name] && !net.IB && fits(net.Name) {
			usable = append(usable, net)
		}
	}
	if len(usable) == 0 {
		return ""
	}
	slices.SortFunc(usable, func(a, b Net) int {
		if a.Speed != b.Speed {
			return cmp.Compare(b.Speed, a.Speed)
		}
		return cmp.Compare(a.Name, b.Name)
	})
	return usable[0].Name
}

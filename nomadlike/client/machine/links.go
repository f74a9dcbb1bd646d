package machine

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/retry"
	"nomadlike/nomadlike/launch"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device/rdma"
	"nomadlike/plugins/driver"
)

// linksEvery is how often the network cards are looked at, linksAgain while one of
// their links is unhealthy: what waits for it goes on when it is.
const (
	linksEvery = 5 * time.Second
	linksAgain = time.Second
)

// Attributes of a node about its network cards. Those of faults are named by
// their links, and are there as long as the faults are.
const (
	attrRDMANets  = "rdma.nets" // interfaces over these cards
	attrFastest   = "net.fastest"
	faultPrefix   = "net.fault."
	AttrInterface = "net.interface" // over which ranks reach each other
	attrLink      = "net.link"      // the link behind that, as faults name it
)

// Links watches the network cards of the machine and registers how they are.
// Look and Watch are called by one goroutine.
type Links struct {
	LinksConfig
	watch rdma.Watch
	data  string // the link behind the interface of ranks, as faults name it; "" until it was seen
}

// LinksConfig is what the watch over network cards needs.
type LinksConfig struct {
	SysRoot  string        // below which sysfs is looked at; "": nowhere
	Addr     string        // the interface that ranks use
	Declared bool          // the configuration says that there is RDMA
	Every    time.Duration // between looks; 0: 5 s
	Now      func() time.Time
	Node     *Registration
	Log      *slog.Logger
}

// NewLinks makes a watch that has not looked yet.
func NewLinks(config LinksConfig) *Links {
	config.Every = cmp.Or(config.Every, linksEvery)
	return &Links{LinksConfig: config}
}

// linkAttributes describes what a look at the network cards has shown. Pure.
func linkAttributes(seen rdma.Inventory, faults []rdma.Fault) map[string]string {
	choice := seen.Choose(nil)
	all := map[string]string{
		launch.AttrRDMACards: strings.Join(choice.Cards, ","), launch.AttrRDMALayer: choice.Layer,
		attrRDMANets: strings.Join(choice.RDMANets, ","), attrFastest: choice.Net,
	}
	for _, fault := range faults {
		all[faultPrefix+fault.Link] = fault.Reason.ID
	}
	maps.DeleteFunc(all, func(_, value string) bool { return value == "" })
	return all
}

// ownLinkAttribute reports whether an attribute is one of linkAttributes.
func ownLinkAttribute(name string) bool {
	return strings.HasPrefix(name, faultPrefix) || strings.HasPrefix(name, "rdma.") || name == attrFastest || name == attrLink
}

// hasRDMA reports whether jobs that need RDMA may come: when a port works, and none
// that worked is lost, since a gang is as fast as its slowest link. What the
// configuration declares counts for cards that sysfs does not show. Pure.
func hasRDMA(seen rdma.Inventory, faults []rdma.Fault, declared bool) bool {
	if slices.ContainsFunc(faults, func(f rdma.Fault) bool { return f.RDMA && linkIsLost(&f) }) {
		return false
	}
	return seen.RDMA() || declared && len(seen.Cards) == 0
}

// linkIsLost reports whether nothing should rely on a link: it is down, or was a
// moment ago. A link that is slower than before still works.
func linkIsLost(fault *rdma.Fault) bool { return fault.Reason.ID != linkSlow }

// linkSlow is the fault of a link that works, slower than before.
const linkSlow = "device.link_slow"

// linkFaults says what the faults of links mean for the node: without the link
// that ranks use it takes no new work. Pure.
func linkFaults(faults []rdma.Fault, data string) []structs.NodeFault {
	var all []structs.NodeFault
	for i := range faults {
		f := &faults[i]
		all = append(all, structs.NodeFault{Name: "link/" + f.Link, Reason: f.Reason, Unfit: f.Link == data && linkIsLost(f)})
	}
	return all
}

// LinkUnfit names the link whose fault keeps a gang from a node: the one behind
// the interface that ranks use, and for those with RDMA any port that is lost.
// "": none does. Pure.
func LinkUnfit(attributes map[string]string, rdmaJob bool) string {
	data := cmp.Or(attributes[attrLink], attributes[AttrInterface])
	if data != "" && attributes[faultPrefix+data] != "" {
		return data
	}
	if !rdmaJob {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		link, ok := strings.CutPrefix(name, faultPrefix)
		if ok && strings.Contains(link, ":") && attributes[name] != linkSlow {
			return link
		}
	}
	return ""
}

// linkBehind names the link behind an interface: the port of an RDMA card, or
// the interface itself. "": neither is there. Pure.
func linkBehind(seen rdma.Inventory, name string) string {
	for i := range seen.Cards {
		for j := range seen.Cards[i].Ports {
			if port := &seen.Cards[i].Ports[j]; slices.Contains(port.Nets, name) {
				return fmt.Sprintf("%s:%d", seen.Cards[i].Name, port.Number)
			}
		}
	}
	if slices.ContainsFunc(seen.Nets, func(n rdma.Net) bool { return n.Name == name }) {
		return name
	}
	return ""
}

// Watch looks at the network cards until ctx is cancelled, after the first look.
func (l *Links) Watch(ctx context.Context) {
	every := l.Every
	for retry.Sleep(ctx, every) {
		every = l.Every
		if l.Look() {
			every = min(every, linksAgain)
		}
	}
}

// Look puts what the network cards are like into the registration, and reports
// whether a link is unhealthy.
func (l *Links) Look() (faulty bool) {
	seen := rdma.Read(l.SysRoot)
	// What tasks talk over counts also when it is a bridge or a VLAN.
	links := seen.With(l.SysRoot, l.Addr)
	faults := l.watch.Step(links, l.Now())
	fresh := linkAttributes(seen, faults)
	l.data = cmp.Or(linkBehind(links, l.Addr), l.data)
	if l.data != "" {
		fresh[attrLink] = l.data
	}
	changed := l.Node.Change(func(node *structs.Node) bool {
		all := maps.Clone(node.Attributes)
		maps.DeleteFunc(all, func(name, _ string) bool { return ownLinkAttribute(name) })
		maps.Copy(all, fresh)
		able := hasRDMA(seen, faults, l.Declared)
		changed := !maps.Equal(all, node.Attributes) || able != node.RDMA
		node.Attributes, node.RDMA = all, able
		return changed
	})
	l.Node.SetFaults(faultsOfLinks, linkFaults(faults, l.data))
	if !changed {
		return len(faults) > 0
	}
	for _, fault := range faults {
		l.Log.Warn("network link is unhealthy", "link", fault.Link, logkey.Reason, fault.Reason)
	}
	l.Node.Refresh()
	return len(faults) > 0
}

// RDMANodes are the device nodes that RDMA needs in a container.
func RDMANodes(sysRoot string, spec *structs.Resources) []driver.Device {
	if !spec.RDMA || sysRoot == "" {
		return nil
	}
	found, err := filepath.Glob(filepath.Join(sysRoot, "dev/infiniband/*"))
	if err != nil {
		return nil
	}
	slices.Sort(found)
	var nodes []driver.Device
	for _, path := range found[:min(len(found), driver.DevicesMax/2)] {
		path = "/dev/infiniband/" + filepath.Base(path)
		nodes = append(nodes, driver.Device{HostPath: path, TaskPath: path, Access: "rw"})
	}
	return nodes
}

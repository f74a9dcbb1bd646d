package placement

import (
	"slices"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/capacity"
)

// portPlan is what port requests ask of a node's used ports.
type portPlan struct {
	requests []structs.PortRequest
	fixed    []int32 // wanted by number
	dynamic  int     // any of the node's range
	never    bool    // no node can answer: a name or number twice, or no number of a port
}

func planPorts(requests []structs.PortRequest) portPlan {
	p := portPlan{requests: requests}
	for i, request := range requests {
		p.never = p.never || slices.ContainsFunc(requests[:i], func(other structs.PortRequest) bool { return other.Name == request.Name })
		if request.Static == 0 {
			p.dynamic++
			continue
		}
		p.never = p.never || request.Static < 1 || request.Static > 65535 || slices.Contains(p.fixed, int32(request.Static))
		p.fixed = append(p.fixed, int32(request.Static))
	}
	return p
}

// portRange is where a node's dynamic ports lie, high excluded.
func portRange(node *structs.Node) (low, high int32) {
	low, high = int32(max(node.Capacity.PortMin, 1)), int32(min(node.Capacity.PortMax, 65535)+1)
	return low, max(low, high)
}

// fits reports whether a node that holds the given ports can answer the requests.
func (p *portPlan) fits(node *structs.Node, used capacity.Ports) bool {
	if len(p.requests) == 0 {
		return true
	}
	if p.never {
		return false
	}
	for _, port := range p.fixed {
		if used.Contains(port) {
			return false
		}
	}
	low, high := portRange(node)
	if free := int(high-low) - len(used) - len(p.fixed); free >= p.dynamic {
		return true // whatever of these lies outside the range
	}
	free := int(high-low) - used.CountIn(low, high)
	for _, port := range p.fixed {
		if port >= low && port < high {
			free--
		}
	}
	return free >= p.dynamic
}

// choose answers requests that fit as feasible.ChoosePorts does, in their order.
func (p *portPlan) choose(node *structs.Node, used capacity.Ports, start uint64) []int32 {
	if len(p.requests) == 0 {
		return nil
	}
	given := make([]int32, len(p.requests))
	low, high := portRange(node)
	for i, request := range p.requests {
		if request.Static != 0 {
			given[i] = int32(request.Static)
			continue
		}
		for k := range uint64(high - low) {
			candidate := low + int32((start+k)%uint64(high-low))
			if !used.Contains(candidate) && !slices.Contains(p.fixed, candidate) && !slices.Contains(given[:i], candidate) {
				given[i] = candidate
				break
			}
		}
	}
	return given
}

// named is what choose gave, by the names of the requests.
func (p *portPlan) named(given []int32) map[string]int {
	if len(given) == 0 {
		return nil
	}
	ports := make(map[string]int, len(given))
	for i, port := range given {
		ports[p.requests[i].Name] = int(port)
	}
	return ports
}

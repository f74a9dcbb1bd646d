package scheduler

import (
	"slices"
	"strings"

	"nomadlike/nomadlike/placement/feasible"
	"nomadlike/nomadlike/structs"
)

// lacking names the devices of a gang that no node has, among those that it may
// use: the kind, the model, as many on one node, or what keeps it off all nodes
// that have them. nil: something else is too little, or the gang has
// alternatives.
func (b *Board) lacking(sh *shape) *structs.WaitReason {
	if len(sh.needs) != 1 {
		return nil
	}
	n := &sh.needs[0]
	for _, request := range n.Spec().Devices {
		most, open := 0, false
		var kinds []string // models
		var bar *structs.Reason
		for i := range b.nodes.states {
			node := b.nodes.states[i].node
			if node == nil || feasible.NodeProblem(n.job, node) != nil || feasible.PoolProblem(n.job, n.Spec(), node, b.Pool(node.PoolName())) != nil {
				continue
			}
			here := 0
			for k := range node.Devices {
				d := &node.Devices[k]
				if d.Kind == request.Kind && !slices.Contains(kinds, d.Model) {
					kinds = append(kinds, d.Model)
				}
				if d.Meets(request) {
					here++
				}
			}
			if most = max(most, here); here < max(request.Count, 1) {
				continue
			}
			if reason := feasible.SpecProblem(n.job, n.Spec(), node); reason == nil {
				open = true
			} else if bar == nil {
				bar = reason
			}
		}
		slices.Sort(kinds)
		switch {
		case len(kinds) == 0:
			return neverFor("scheduler.device_missing", "kind", request.Kind)
		case most == 0 && len(request.IDs) == 0 && request.Memory == 0 && (request.Model != "" || len(request.Models) > 0):
			wanted := request.Models
			if request.Model != "" {
				wanted = []string{request.Model}
			}
			return neverFor("scheduler.model_missing", "kind", request.Kind, "model", strings.Join(wanted, " | "), "models", shorten(kinds))
		case !open && bar != nil:
			return barText(sh, bar)
		case most > 0 && most < request.Count:
			return neverFor("scheduler.devices_many", "kind", request.Kind, "count", request.Count, "most", most)
		}
	}
	return nil
}

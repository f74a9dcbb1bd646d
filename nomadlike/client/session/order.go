package session

import (
	"hash/fnv"
	"slices"
)

// Order returns the order in which a node tries servers. It differs from node
// to node, so that the streams spread evenly, and a node's order of the
// remaining servers does not change when one comes or goes.
func Order(nodeID string, servers []string) []string {
	type scored struct {
		addr  string
		score uint64
	}
	all := make([]scored, 0, len(servers))
	for _, addr := range servers {
		all = append(all, scored{addr, score(nodeID, addr)})
	}
	slices.SortFunc(all, func(a, b scored) int {
		switch {
		case a.score != b.score && a.score > b.score, a.score == b.score && a.addr < b.addr:
			return -1
		case a.addr == b.addr:
			return 0
		}
		return 1
	})
	order := make([]string, 0, len(all))
	for i, s := range all {
		if i == 0 || s.addr != all[i-1].addr {
			order = append(order, s.addr)
		}
	}
	return order
}

func score(nodeID, addr string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(nodeID + "\x00" + addr))
	// FNV mixes its last bytes poorly; a multiply and a shift finish the job.
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	x ^= x >> 33
	return x
}

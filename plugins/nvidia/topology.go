package nvidia

import (
	"fmt"

	"nomadlike/plugins/device/pcie"
)

// linkGroup is the set of cards that a card is best used together with.
type linkGroup struct {
	name  string
	kind  string // "nvlink", "nvswitch", "pcie", "numa"
	peers int    // other cards reached by NVLink
}

// group finds the link group of every card, in the order of cards: those that
// NVLink joins, directly or through switches; else those under one PCI root;
// else those of one NUMA node. It is pure, and groups are numbered by their
// first card.
func group(cards []Card, around *Surroundings) []linkGroup {
	groups := make([]linkGroup, len(cards))
	joined := newSets(len(cards))
	switches := make(map[string]int) // a switch, or a fabric, and the first card at it
	byBus := make(map[string]int, len(cards))
	for i := range cards {
		byBus[cards[i].Bus] = i
	}
	viaSwitch := make([]bool, len(cards))
	for i := range cards {
		for _, link := range cards[i].Links {
			switch other, known := byBus[link.Remote]; {
			case !link.Up:
			case link.Switch:
				// All switches of a machine form one fabric.
				viaSwitch[i] = true
				joined.byKey(switches, "switch", i)
			case known && other != i:
				joined.union(i, other)
			}
		}
		if f := cards[i].Fabric; f != nil && f.Cluster != "" && f.Ready {
			viaSwitch[i] = true
			joined.byKey(switches, fmt.Sprintf("fabric %s %d", f.Cluster, f.Clique), i)
		}
	}
	numbers := make(map[int]int)
	rest := make([]int, 0, len(cards))
	for i := range cards {
		size := joined.size(i)
		if size < 2 {
			rest = append(rest, i)
			continue
		}
		root := joined.find(i)
		if _, numbered := numbers[root]; !numbered {
			numbers[root] = len(numbers)
		}
		kind := "nvlink"
		if viaSwitch[i] {
			kind = "nvswitch"
		}
		groups[i] = linkGroup{name: fmt.Sprintf("nvlink-%d", numbers[root]), kind: kind, peers: size - 1}
	}
	groupByPlace(groups, rest, cards, around)
	return groups
}

// groupByPlace groups the cards without NVLink.
func groupByPlace(groups []linkGroup, rest []int, cards []Card, around *Surroundings) {
	roots := make(map[string]int)
	for _, i := range rest {
		roots[around.Place(cards[i].Bus).Root()]++
	}
	numbers := make(map[string]int)
	for _, i := range rest {
		place := around.Place(cards[i].Bus)
		root := place.Root()
		switch {
		case root != "" && roots[root] >= 2:
			if _, numbered := numbers[root]; !numbered {
				numbers[root] = len(numbers)
			}
			groups[i] = linkGroup{name: fmt.Sprintf("pcie-%d", numbers[root]), kind: "pcie"}
		case place.NUMA >= 0:
			groups[i] = linkGroup{name: fmt.Sprintf("numa-%d", place.NUMA), kind: "numa"}
		}
	}
}

// sets joins cards into disjoint sets; a set's representative is its first
// card.
type sets struct{ parent []int }

func newSets(n int) *sets {
	s := &sets{parent: make([]int, n)}
	for i := range s.parent {
		s.parent[i] = i
	}
	return s
}

func (s *sets) find(i int) int {
	for s.parent[i] != i {
		s.parent[i] = s.parent[s.parent[i]]
		i = s.parent[i]
	}
	return i
}

func (s *sets) union(i, k int) {
	a, b := s.find(i), s.find(k)
	s.parent[max(a, b)] = min(a, b)
}

// byKey joins a card with the first one of the same key.
func (s *sets) byKey(first map[string]int, key string, i int) {
	if other, seen := first[key]; seen {
		s.union(i, other)
		return
	}
	first[key] = i
}

func (s *sets) size(i int) int {
	root, n := s.find(i), 0
	for k := range s.parent {
		if s.find(k) == root {
			n++
		}
	}
	return n
}

// Matrix draws how near cards are to each other, for people: "NV18" with the
// number of direct NVLinks, "NVS" through switches, else the PCI distance.
func Matrix(cards []Card, around *Surroundings) [][]string {
	groups := group(cards, around)
	matrix := make([][]string, len(cards))
	for i := range cards {
		matrix[i] = make([]string, len(cards))
		for k := range cards {
			direct := 0
			for _, link := range cards[i].Links {
				if link.Up && !link.Switch && link.Remote == cards[k].Bus {
					direct++
				}
			}
			switch {
			case i == k:
				matrix[i][k] = "X"
			case direct > 0:
				matrix[i][k] = fmt.Sprintf("NV%d", direct)
			case groups[i].kind == "nvswitch" && groups[i].name == groups[k].name:
				matrix[i][k] = fmt.Sprintf("NVS%d", linksUp(&cards[i]))
			default:
				matrix[i][k] = pcieWord(around.Place(cards[i].Bus), around.Place(cards[k].Bus))
			}
		}
	}
	return matrix
}

func pcieWord(a, b pcie.Place) string {
	switch pcie.Between(a, b) {
	case pcie.Switch:
		return "PIX"
	case pcie.Bridge:
		return "PXB"
	case pcie.Root:
		return "PHB"
	case pcie.NUMA:
		return "NODE"
	}
	return "SYS"
}

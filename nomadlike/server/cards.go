package server

import (
	"cmp"
	"slices"

	"nomadlike/nomadlike/structs"
)

// CardsOf returns the NPUs among the devices of a rank, as rank tables name them:
// with their own addresses, in the order of their numbers. Without the facts of
// one of them there are none, since half a table is worse than no table: NPUs
// that a configuration declares have facts when it sets their device_ip.
func CardsOf(node *structs.Node, ids []string) []structs.Card {
	var cards []structs.Card
	for i := range node.Devices {
		d := &node.Devices[i]
		if d.Kind != structs.DeviceKindAscend || !slices.Contains(ids, d.ID) {
			continue
		}
		if d.Attrs[structs.DeviceAttrLogicID] == "" && d.Attrs[structs.DeviceAttrIP] == "" {
			return nil
		}
		cards = append(cards, structs.Card{
			ID: d.ID, Index: d.Index, IP: d.Attrs[structs.DeviceAttrIP],
			SuperID: d.Attrs[structs.DeviceAttrSuperDevice], SuperPod: d.Attrs[structs.DeviceAttrSuperPod],
		})
	}
	slices.SortFunc(cards, func(a, b structs.Card) int { return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.ID, b.ID)) })
	return cards
}

package server

import (
	"cmp"
	"slices"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
)

// CardsOf gives the NPUs among the devices of a rank, as rank tables name them:
// with their own addresses, in the order of their numbers. Without the facts of
// one of them there are none, since half a table is worse than no table: NPUs
// that a configuration declares have facts when it gives them a device_ip.
func CardsOf(node *structs.Node, ids []string) []structs.Card {
	var cards []structs.Card
	for i := range node.Devices {
		d := &node.Devices[i]
		if d.Kind != device.KindAscend || !slices.Contains(ids, d.ID) {
			continue
		}
		if d.Attrs[device.AttrLogicID] == "" && d.Attrs[device.AttrDeviceIP] == "" {
			return nil
		}
		cards = append(cards, structs.Card{
			ID: d.ID, Index: d.Index, IP: d.Attrs[device.AttrDeviceIP],
			SuperID: d.Attrs[device.AttrSuperDevice], SuperPod: d.Attrs[device.AttrSuperPod],
		})
	}
	slices.SortFunc(cards, func(a, b structs.Card) int { return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.ID, b.ID)) })
	return cards
}

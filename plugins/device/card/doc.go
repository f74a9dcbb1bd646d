// Package card makes a device plugin of a vendor whose cards need nothing
// special: its library, a table of what is done about which fault, and a
// reserve, all in one Vendor.
//
// Flow: a Library reads the node's Cards, with the findings that it has itself
// about each; Health adds what the plugin finds (a card that vanishes, counts of
// memory errors that rise, links and lanes that are lost) and judges both by the
// Table, which an administrator may override; Devices turns cards into the
// devices of a snapshot. The loop around them is plugins/device/runtime.
//
// Limits: cards are whole; parts of them are nobody's here. Cards that the
// vendor's links join, over any number of others, are one link group.
package card

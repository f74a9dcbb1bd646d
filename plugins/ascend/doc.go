// Package ascend is the device plugin for Huawei's Ascend cards.
//
// Flow: a Library reads the node's facts: package dcmi does it with the
// vendor's library, Tool with the output of npu-smi where the library cannot
// be loaded; /etc/hccn.conf adds the addresses of the cards' own network
// ports. Devices turns facts into the devices of a snapshot, with what rank
// tables need and the ring of HCCS links as the link group; Health.Step judges
// health levels and fault codes by the table in codes.json, which an
// administrator may override, also with the vendor's own file. Plugin is the
// thin coat around these: it glances at the health of all chips several times
// a second, reads everything now and then, and publishes.
//
// Limits: the package itself loads nothing, so that the agent can ask Present.
// Faults are polled, not subscribed to. Chips are known by the number of their
// die, and by their place where only npu-smi can be asked. Virtual NPUs are
// reported by whoever makes them, not made here.
package ascend

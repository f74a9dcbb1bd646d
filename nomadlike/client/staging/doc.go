// Package staging brings versions of named data to a node from other nodes that have them,
// or are getting them, so that a storage is read about once however many nodes want it.
//
// Flow: Bring asks a server who else takes part, and these what they have; a swarm decides
// which piece comes next and from whom, the storage among them; each piece is compared
// with the manifest, whose digest stands in the servers' log, before anybody sees it.
// Answer hands pieces of this node's copies, and of those in the making, to other nodes.
//
// Trust: a node that asks is named by its certificate, and reads what an allocation of its
// own uses, as a server says each minute. A node that answers is believed nothing: what it
// sends is compared, and who has sent something else is left alone for this copy. What is
// sent is bounded in bytes per second, in pieces at a time, and in pieces for one node.
//
// Limits: versions that have a digest. A directory of a storage has none, and is read by
// each node.
package staging

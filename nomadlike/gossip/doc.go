// Package gossip tells agents of each other: who is in the cluster, where the
// servers are, and whom this agent can reach. Every agent, server or client,
// is a member.
//
// Flow: Open joins the cluster through seeds and the servers remembered from
// the last run, and keeps trying; Members and Servers answer from a table in
// memory; Events reports changes; Witness asks the network here and now, so
// that a leader can ask several agents what they see before it declares a
// node lost. hashicorp/memberlist does the work (SWIM with Lifeguard).
//
// Nothing here decides about life and death: gossip is a hint to dial and a
// witness among others. What it says can be forged by whoever holds the
// gossip key, as every node does. So servers have each claim about a server
// proven over rpc before it is heard (Config.Prove), and go on asking those
// that were proven.
//
// Limits: packets are AES-256-GCM with the cluster's key and label; those
// that do not decrypt are dropped and counted. Metadata of a member is at
// most MetaSizeMax bytes, members at most MembersMax. After a mass restart
// memberlist may leave members dead in some views forever (its issue 311),
// so servers that were known and are not alive are joined again every
// RejoinInterval, and by other servers every five seconds. A known server that
// left in order is forgotten when it has stayed away for ten minutes.
package gossip

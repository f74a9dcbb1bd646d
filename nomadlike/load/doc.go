// Package load reports how full pools were, are and probably will be: how many
// cards jobs use, how many are held for people to look at, kept for jobs that
// wait, or away, at some instants before and after now.
//
// Flow: Past reads nodes, allocations, events and past runs of the replicated
// state, and gives the sites that there are with spans in which something was
// held of them; package forecast gives the spans that are expected. Sum adds both
// up. So the past and the future are counted in one way, and no history is kept
// beside the state.
//
//	state ──Past──► sites, spans ─┐
//	                              ├─Sum─► outlook.PoolLoad of each pool, and of all
//	forecast ───────────► spans ──┘
//
// Holders tells of the same past which job held which card.
//
// Limits: nodes that were removed are missing, with what ran there; nodes count
// with the cards that they have now. What the cluster keeps of a job that it has
// forgotten is its past run: that counts in its pool, on no node. When nodes were
// away, and when debug holds ended, is told by events, as far back as they are
// kept. Ends of ranks are told by the clocks of their nodes.
//
// Everything here is pure.
package load

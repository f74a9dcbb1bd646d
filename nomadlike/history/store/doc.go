// Package store keeps the cluster's history on a server's disk.
//
// Flow: the log gives rows to Add, which keeps them in memory and returns. Run writes them
// to the tail within a tenth of a second and has them reach the disk; Sync does so at once,
// before the log forgets the entries that they come from. A tail that is full, or whose
// month is over, becomes a segment. What the log did not give, because the state came by a
// snapshot, and what was damaged on the disk, is a gap: Gaps names it, Part answers another
// server's question for it, and Fill closes it.
//
//	history/AFTER.tail           frames of rows, the newest
//	history/AFTER-THROUGH.seg    all rows behind one index of the log and up to another
//	history/removed              the index up to which segments were removed
//	history/*.damaged            segments that were not what was written
//
// Rows are known by the index of their entry: an entry that is applied anew after a start
// is recognised, and its rows are not written twice.
//
// Limits: who asks whom for what is missing is decided by others. Rows that cannot be
// written stay in memory, and the log keeps their entries.
package store

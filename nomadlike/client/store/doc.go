// Package store is what a node remembers over restarts of its agent: who it
// is, and the state of each allocation with the reports that no server has
// acknowledged yet.
//
// Flow: OpenIdentity reads or makes the node's id and counts its starts;
// Open opens the bbolt file with the allocation states; Apply writes a batch
// of changes in one transaction.
//
// What is durable, and why: a transaction is handed to the kernel before
// Apply returns, so it survives the death of the agent at any moment. It is
// not fsynced there: a machine that loses its power loses its tasks as well,
// and what the store says of them is worth nothing any more. Sync, called
// now and then and at the end, keeps the loss small. The identity is fsynced.
//
// Limits: one process at a time; the package decides nothing.
package store

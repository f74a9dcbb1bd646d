// Package layout names the files of a node's data directory.
//
// Flow: rooms ask it for paths; what a task may write lies below alloc, what the
// agent keeps of it, and is controlled by, below records, which no task sees.
//
// Limits: it makes no directories. Records of agents before 2026-11-22 lie beside the
// task's directory and are found there.
package layout

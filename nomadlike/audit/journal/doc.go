// Package journal keeps the audit record on a server's disk: the chain of the
// server itself, and copies of those of the others.
//
// Flow: Append writes a line of the server's own chain to a file and returns;
// Run has it reach the disk within a fifth of a second and only then offers it
// to others. Take puts what others offered into copies, verified. Query reads
// all chains, newest first; Check verifies them.
//
//	audit/ID/00000000000000000001.jsonl   a chain's file, by its first line
//	audit/ID~LINE/                        a copy that another server's chain has departed from
//
// A write that was cut off, because the process was killed or the power failed,
// leaves a last line that is not whole: it is cut off at the next start, and a
// record says so.
//
// Limits: what is worth a record is decided by others; who asks whom for copies,
// too. It removes files by age and size, and nothing else.
package journal

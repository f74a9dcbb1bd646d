// Package structs holds the nouns of nomadlike: what a job, an attempt, an
// allocation, a node and an event are, which values of them are valid, and
// which changes of state are legal.
//
// Flow: jobspec decodes a file into a Job, server admits it, state stores it,
// scheduler places it, launch turns it into commands, api carries it as JSON.
// All of them use the one Go form defined here; JSON names are the wire names
// of the HTTP API and, through the same tags, of Raft commands and RPC bodies.
//
// Limits: standard library only; no clock, no randomness, no I/O. Values that
// are stored are never changed in place: Copy first.
package structs

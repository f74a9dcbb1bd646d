// Package faults tells the story of each fault of a job: when it was, when the
// servers knew, what they did, when the work went on, and what all of it cost.
//
// Flow: Tell reads what the state keeps of a job (attempts, allocations, events) and
// what nodes keep of its steps; the API answers with it, the command line and the
// pages show it. What is told are ids of the catalogue with their parameters.
//
// Limits: pure. What nobody wrote down stands there as not known, with the reason;
// nothing is guessed. Times of a rank's end are by its node's clock, all others by
// that of the servers.
package faults

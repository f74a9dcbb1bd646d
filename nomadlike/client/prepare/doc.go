// Package prepare gets allocations ready to start: the node is fit, the user is known,
// data and image are there, directories and files are made, devices are reserved, hooks
// have run.
//
// Flow: Prepare does one step after the other and returns what a start takes, or whose
// fault it is that there is none; it may be repeated after a crash. Release frees
// what a preparation holds.
//
// Limits: what a step has made stays until the allocation's directory goes.
package prepare

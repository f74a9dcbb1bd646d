// Package capacity counts what a node has, what a rank takes of it, and what is
// left: cores, memory and devices as numbers (Amount), single devices as a Set,
// ports as a sorted list (Ports).
//
// Flow: structs.Node.Free and structs.Resources.Amount turn records into
// amounts; placement keeps one amount per node and adds and subtracts as gangs
// come and go; the scheduler and the forecast compare amounts of the same form.
//
// Limits: an Amount counts devices whatever their model. Which device it is, and
// whether it is of the model that a request names, is the business of a Set of a
// node's devices: the devices of a model are one, and what is free is another.
// Everything here is pure; values may be read by any goroutine.
package capacity

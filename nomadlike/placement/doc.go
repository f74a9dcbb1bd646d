// Package placement keeps what is free on the nodes of a cluster, and chooses
// the nodes, devices and ports of gangs.
//
// Flow: the scheduler's board Puts nodes with what they hold on a Floor, and
// keeps it current as allocations come and go. For each queued gang it asks
// Choose, with a Need compiled once for all jobs of one shape, and Holds what
// was chosen. A forecast Clones the floor and plays runs on the copy.
//
// What may stand where is decided by feasible.PlacementProblem and
// feasible.PoolProblem alone: state.Apply asks them again, and Choose never returns
// what they refuse, nor misses what they allow. The choice between what is
// allowed is made here, see Options and Floor.Choose.
//
// Limits: a floor knows neither queue, quota nor time. It is not safe for
// concurrent use; clones are independent of each other.
package placement

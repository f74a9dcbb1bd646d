// Package feasible has the one answer to "may this rank stand on this node?", and
// to "may this gang end those?".
//
// Flow: the scheduler asks while it searches, package placement compares its fast
// choice with it, the forecast asks it of nodes, and state.Apply asks again when a
// plan arrives, so that an accepted plan cannot be refused later for a reason that
// the scheduler did not know. It reads what it needs through a View: state.Apply
// stands on its transaction, the scheduler on its board.
//
//	Barred            what the node is, whatever it holds: pool, drivers, storage
//	Open, CouldRun   the same as a yes or no, and with the node empty
//	RoomProblem       cores and memory, as one capacity.Amount
//	ChooseDevices,    which devices and ports of what is free
//	ChoosePorts
//	PlacementProblem  all of it for one rank as placed
//	GangProblem       all ranks, with quota; VictimProblem who must yield
//
// Limits: it decides of one gang at a time, and chooses nothing between nodes.
// Cores are compared in whole thousandths: sums of fractions such as 0.1 drift in
// floating point, and a drift must never turn a full node into a fit. Everything
// here is pure and reads its arguments only; any goroutine may call it.
package feasible

package wire

// ProtocolVersion is the version of everything agents say to each other and
// write to the log. It rises by one with every change; each has its line:
//
//	1  2026-11-21  first version: commands 1 to 18, node session, exec stream
//	2  2026-11-21  pools, projects, claims, places in the queue, forecasts: commands 19 to 25
//	3  2026-11-21  figures of nodes and treatment of their devices: Node.Figures, Node.Treat, command 26
//	4  2026-11-21  pause, continue, throttle and finish: commands 27 and 28, Allocation.Control and its answer
//	5  2026-11-21  containers kept as images: Alloc.Commit; events tell causes and the health of devices
//	6  2026-11-22  what ranks used over time: Node.RankPast
const ProtocolVersion = 6

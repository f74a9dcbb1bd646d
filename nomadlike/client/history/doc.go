// Package history keeps what a machine and its devices measured during the last
// day, a value of each figure for every minute, and what each rank used as long
// as it ran.
//
// Flow: the client notes a measurement every few seconds; those of one span
// become one cell. Whoever asks gets the cells of a span, put together to as many
// points as he wants. A Book is the history of a machine, with minutes as cells; a
// Record is that of one rank, with cells that become twice as long whenever
// there are too many of them. Both are written into a file once in a while, so
// that a new process of the agent goes on with them.
//
// Limits: Kept cells of DevicesMax devices, of the machine and of each rank,
// about 60 KiB each. A span in which nothing was measured is missing. The agent's
// clock orders the cells: when it is set back by more than one span, what was
// written of the future is dropped. A crash loses what was noted since the last
// Save.
package history

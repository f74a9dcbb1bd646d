// Package diary keeps what a machine and its devices measured during the last
// day, a value of each figure for every minute.
//
// Flow: the client notes a measurement every few seconds; those of one minute
// become one cell. Whoever asks gets the cells of a span, put together to as many
// points as he wants. The diary is written into a file once in a while, so that
// a new process of the agent goes on with it.
//
// Limits: Kept cells of DevicesMax devices and of the machine, about 60 KiB each.
// A minute in which nothing was measured is missing. The agent's clock orders
// the cells: when it is set back by more than a minute, what was written of
// the future is dropped. A crash loses what was noted since the last Save.
package diary

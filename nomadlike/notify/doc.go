// Package notify decides who is told what, and what the words are. All of it is
// functions of events, of what people chose, of how far decisions are, and of the time:
// the leader calls them, puts what comes out into the log, and sends what the log holds.
//
// Flow: Decide makes messages of events; Overdue makes them of what only time brings
// about; TextOf puts one into words; RequestFor makes what a channel is sent, and Verdict
// judges what it answered; After says when to try again.
//
// Limits: what an event does not say is not told. A message is made once, whichever
// server leads; it reaches a channel at least once, each time with the same id.
package notify

// Package forward sends a server's audit record on: to a file, or to a syslog
// server.
//
// Flow: Run reads the server's own chain from where it was, sends what is on the
// disk, and keeps the number of the last line that was taken. The chain itself is
// the queue: nobody waits for a target, and one that was away for days gets
// everything that is still kept. What was removed before it could be sent is
// counted and recorded.
//
// Limits: a target gets each line at least once, and in order; after a connection
// that broke, some again. Syslog has no answers: what was on its way when the other
// end died is not sent anew.
package forward

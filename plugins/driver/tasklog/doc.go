// Package tasklog holds what a task writes to stdout and stderr, in files of
// bounded size and number, and reads them back while they grow and rotate.
//
// Flow: the task's supervisor opens a Writer per stream and copies pipes into
// it; client/logs calls Read on the same directory, from another process.
// The two share nothing but the files. A stream is one long row of bytes, cut
// into segments stdout.0, stdout.1, …; every segment but the newest holds
// exactly the same number of bytes, so a byte's offset in the stream follows
// from its segment's number, and a reader knows how many bytes rotation took
// away before it came.
//
// Limits: standard library only, Linux only. One writer per stream. Nothing
// here looks at the contents; lines are cut by Splitter, on the reader's side.
// The directory is not the task's: mode 0700 and owned by the agent. Links,
// FIFOs, devices and files with a second name are refused, in case it was
// tampered with all the same.
package tasklog

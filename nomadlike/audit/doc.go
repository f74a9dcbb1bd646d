// Package audit is the record of who did what: its lines, the chain that they
// form, and what is decided about them.
//
// Flow: a Record becomes a line of JSON that holds the hash of the line before.
// Chain walks over lines and names the first one that does not follow. Expired
// and Bounds.Full decide about files; Tally and Seen bound how many records one
// caller can cause.
//
// Limits: everything here is a function of its arguments. Files are package
// journal; what a request is worth is decided where requests are authorised.
package audit

// Package environment looks at what tasks see, by the rules of package envcheck, and
// reports what is odd about it.
//
// Flow: a caller describes a task in a Look, before its command is started or while it
// runs; Take runs the script in the task, adds what the node sees of its processes and
// of the port at which ranks meet, and tells each finding once.
//
// Limits: a task without a shell cannot be looked at. What is found stops nothing.
package environment

// Package loop owns what a node knows of its allocations.
//
// Flow: any goroutine posts functions and events to an Inbox; the loop runs them one
// after the other, has the pure tables of package alloc decide, stores the changed
// states in one transaction and then hands every effect to Effects. A *Loop is only
// ever given to what runs in the loop's goroutine: to have one is to be allowed to
// touch what it owns.
//
// Limits: nothing that blocks may run in it.
package loop

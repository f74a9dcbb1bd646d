// Package retry has the patience of a node with what answers late: drivers, plugins,
// and whatever else is asked again.
//
// Flow: a caller begins with First, doubles up to Most, and sleeps by Sleep, which ends
// with its context.
//
// Limits: it does not decide what is worth another try.
package retry

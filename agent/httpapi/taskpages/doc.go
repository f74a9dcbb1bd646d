// Package taskpages shows in a browser what tasks serve on their ports.
//
// Purpose: a page of a task, such as a notebook, is reached with nothing but a browser
// that is signed in, and can do nothing with that sign-in.
//
// Flow: each port of each allocation is an origin of its own, PORT-ALLOCATION under a
// domain that an administrator names. The API hands out an entry, the origin exchanges
// it for a pass in a cookie of its own, and what comes with the pass goes into the task:
//
//	browser ──TLS──► Door ──pass──► link ──ssh in an exec stream──► port in the task
//
// A link is judged, bounded, watched and ended like any other exec stream; it lasts
// while it is used.
//
// Limits: HTTP/1.1 and websockets. What a page stores in cookies for the whole domain
// by a script reaches the other pages below it: programs must not take such a cookie
// for a secret of their own.
package taskpages

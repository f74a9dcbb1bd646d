// Package beneath opens directories below a directory of the agent without
// following any link on the way, whoever may have put one there in between.
//
// Flow: each step opens one element relative to the directory before it, with
// O_NOFOLLOW, so that what was judged is what is used.
//
// Limits: standard library only; on other systems than Linux everything is refused. The directory it begins with is
// trusted, links in its own path included.
package beneath

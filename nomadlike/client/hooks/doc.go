// Package hooks runs the lifecycle scripts of jobs: beside the command in its task,
// before and after it in a task of the same kind that holds its place.
//
// Flow: Keep stores what later hooks need when an allocation is prepared; Around and
// Beside run them, tell their ends as events and keep their output apart from the
// command's.
//
// Limits: one hook after the other, each within its own time.
package hooks

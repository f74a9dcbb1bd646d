//go:build !linux || cli

package main

// superviseTask does nothing: tasks run on Linux.
func superviseTask([]string) (code int, done bool) { return 0, false }

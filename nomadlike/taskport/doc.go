// Package taskport reaches the ports of a task through the ssh that every task has:
//
//	caller ──stream of an exec──► agent of the node ──► program inside of the task ──► its port
//
// What dials is inside of the task, so that what is reached is what the task itself
// reaches, and nothing else.
//
// Limits: TCP only, on the loopback addresses of the task.
package taskport

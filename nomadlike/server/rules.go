package server

import (
	"nomadlike/nomadlike/scheduler"
	"nomadlike/nomadlike/structs"
)

// rules is how the scheduler decides here, for plans and for forecasts alike:
// jobs that read copies of data on fast storage go where copies are, if they
// can.
func rules() scheduler.Settings {
	return scheduler.Settings{
		Prefer:  func(job *structs.Job, node *structs.Node) int { return node.CopiesFor(job) },
		Prefers: (*structs.Job).UsesCopies,
	}
}

package api

import (
	"context"

	"nomadlike/nomadlike/structs"
)

// TaskPageRequest names a port of a task, whose program speaks HTTP.
type TaskPageRequest struct {
	Port string `json:"port"` // a number, or a name of the job file
}

// TaskPage is where a browser sees what the program serves.
type TaskPage struct {
	// Address works once, until ExpiresAt, and signs in whoever opens it there as the
	// caller, for that port of that task.
	Address   string           `json:"address"`
	Port      int              `json:"port"`
	ExpiresAt structs.UnixNano `json:"expires_at"`
}

// TaskPage asks for an address at which a browser sees a port of a task.
func (c *Client) TaskPage(ctx context.Context, allocID, port string) (*TaskPage, error) {
	return change(ctx, c, AllocationsPage, allocID, TaskPageRequest{Port: port})
}

package api

import (
	"context"

	"nomadlike/nomadlike/structs"
)

// CommitRequest asks for an image of a running task's container.
type CommitRequest struct {
	Name    string `json:"name"`              // "trained:1"; the image is called nomadlike/<project>/trained:1
	Comment string `json:"comment,omitempty"` // kept with the image
}

// CommitAllocation keeps the container of a running task as an image on its
// node. Its processes stand still while it is made.
func (c *Client) CommitAllocation(ctx context.Context, id string, request CommitRequest) (*structs.Committed, error) {
	return change(ctx, c, AllocationsCommit, id, request)
}

package api

import (
	"context"
	"net/http"

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
	out := new(structs.Committed)
	if _, err := c.do(ctx, call{method: http.MethodPost, path: join("v1", "allocations", id, "commit"), in: request}, out); err != nil {
		return nil, err
	}
	return out, nil
}

package api

import (
	"context"

	"nomadlike/nomadlike/structs"
)

// CommitRequest asks for an image of a running task's container.
type CommitRequest struct {
	Name    string `json:"name"`              // "trained:1"; the image is called nomadlike/<project>/trained:1
	Comment string `json:"comment,omitempty"` // kept with the image
	// Push is the name of a registry's to which the image is sent when it is made; Secret,
	// of the job's project, or with Mine of the caller, signs in there. What the node itself
	// signs in with is not used.
	Push   string `json:"push,omitempty"`
	Secret string `json:"secret,omitempty"`
	Mine   bool   `json:"mine,omitempty"`
}

// Committed is the image that was made.
type Committed struct {
	structs.Committed
	Pushed string `json:"pushed,omitempty"` // the name under which a registry has it
	Digest string `json:"digest,omitempty"` // in that registry
}

// CommitAllocation keeps the container of a running task as an image on its
// node. Its processes stand still while it is made.
func (c *Client) CommitAllocation(ctx context.Context, id string, request CommitRequest) (*Committed, error) {
	return change(ctx, c, AllocationsCommit, id, request)
}

package api

import (
	"context"
	"time"

	"nomadlike/nomadlike/structs"
)

// Bounds of share links.
const (
	ShareTTLDefault = 7 * 24 * time.Hour
	ShareTTLMax     = 30 * 24 * time.Hour
	SharesMax       = 32 // that are not over: of one job, and of the wall
)

// ShareRequest describes a link that shows one thing, read-only, to whoever
// has it.
type ShareRequest struct {
	Name string           `json:"name,omitempty"` // for people, such as whom it is for
	TTL  structs.Duration `json:"ttl,omitempty"`  // 0: ShareTTLDefault; at most ShareTTLMax
}

// NewShare is a link with its secret, which is shown this once. Path is what
// follows the address of an agent: the secret stands behind its #, so that
// browsers send it to nobody with the address.
type NewShare struct {
	Token  structs.Token `json:"token"`
	Secret string        `json:"secret"`
	Path   string        `json:"path"`
}

// ShareList lists links without their secrets, oldest first.
type ShareList struct {
	Shares []structs.Token `json:"shares"`
}

// ShareJob makes a link that shows one job.
func (c *Client) ShareJob(ctx context.Context, id string, request ShareRequest) (*NewShare, error) {
	return change(ctx, c, JobsShare, id, request)
}

// ShareWall makes a link that shows the wall of cards.
func (c *Client) ShareWall(ctx context.Context, request ShareRequest) (*NewShare, error) {
	return change(ctx, c, WallShare, "", request)
}

// JobShares lists the links that show a job and are not over.
func (c *Client) JobShares(ctx context.Context, id string) (*ShareList, error) {
	out, _, err := read(ctx, c, JobsShares, id, nil)
	return out, err
}

// WallShares lists the links that show the wall of cards and are not over.
func (c *Client) WallShares(ctx context.Context) (*ShareList, error) {
	out, _, err := read(ctx, c, WallShares, "", nil)
	return out, err
}

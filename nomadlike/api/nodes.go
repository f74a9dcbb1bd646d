package api

import (
	"context"

	"nomadlike/nomadlike/structs"
)

// Nodes returns one page of the nodes by name.
func (c *Client) Nodes(ctx context.Context, query *Query) (*NodeList, *Meta, error) {
	return read(ctx, c, NodesList, "", query.values())
}

// Node reads one node by its id, a unique prefix of it, or its name.
func (c *Client) Node(ctx context.Context, id string, query *Query) (*NodeDetail, *Meta, error) {
	return read(ctx, c, NodesRead, id, query.values())
}

// DrainNode moves work away from a node and gives it no more.
func (c *Client) DrainNode(ctx context.Context, id string, deadline structs.Duration) (*Changed, error) {
	return change(ctx, c, NodesDrain, id, DrainRequest{Deadline: deadline})
}

// CordonNode stops new work on a node; what runs goes on.
func (c *Client) CordonNode(ctx context.Context, id string) (*Changed, error) {
	return change(ctx, c, NodesCordon, id, None{})
}

// UncordonNode lets a node take work again, after a cordon or a drain.
func (c *Client) UncordonNode(ctx context.Context, id string) (*Changed, error) {
	return change(ctx, c, NodesUncordon, id, None{})
}

// RemoveNode shuts a node out of the cluster at once and forgets it.
func (c *Client) RemoveNode(ctx context.Context, id string) (*Changed, error) {
	return change(ctx, c, NodesRemove, id, None{})
}

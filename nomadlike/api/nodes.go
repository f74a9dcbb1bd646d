package api

import (
	"context"
	"net/http"

	"nomadlike/nomadlike/structs"
)

// Nodes returns one page of the nodes by name.
func (c *Client) Nodes(ctx context.Context, query *Query) (*NodeList, *Meta, error) {
	out := new(NodeList)
	meta, err := c.get(ctx, "/v1/nodes", query.values(), out)
	if err != nil {
		return nil, nil, err
	}
	return out, meta, nil
}

// Node reads one node by its id, a unique prefix of it, or its name.
func (c *Client) Node(ctx context.Context, id string, query *Query) (*NodeDetail, *Meta, error) {
	out := new(NodeDetail)
	meta, err := c.get(ctx, join("v1", "nodes", id), query.values(), out)
	if err != nil {
		return nil, nil, err
	}
	return out, meta, nil
}

// DrainNode moves work away from a node and gives it no more.
func (c *Client) DrainNode(ctx context.Context, id string, deadline structs.Duration) (*Changed, error) {
	return c.change(ctx, http.MethodPost, join("v1", "nodes", id, "drain"), DrainRequest{Deadline: deadline})
}

// CordonNode gives a node no new work; what runs goes on.
func (c *Client) CordonNode(ctx context.Context, id string) (*Changed, error) {
	return c.change(ctx, http.MethodPost, join("v1", "nodes", id, "cordon"), nil)
}

// UncordonNode lets a node take work again, after a cordon or a drain.
func (c *Client) UncordonNode(ctx context.Context, id string) (*Changed, error) {
	return c.change(ctx, http.MethodPost, join("v1", "nodes", id, "uncordon"), nil)
}

// RemoveNode shuts a node out of the cluster at once and forgets it.
func (c *Client) RemoveNode(ctx context.Context, id string) (*Changed, error) {
	return c.change(ctx, http.MethodDelete, join("v1", "nodes", id), nil)
}

package api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// Members lists the agents that gossip knows.
func (c *Client) Members(ctx context.Context) (*MemberList, error) {
	out := new(MemberList)
	if _, err := c.get(ctx, "/v1/servers", nil, out); err != nil {
		return nil, err
	}
	return out, nil
}

// JoinServers tells the agent's gossip of further addresses, host:port.
func (c *Client) JoinServers(ctx context.Context, addresses []string) (*ServersJoined, error) {
	out := new(ServersJoined)
	_, err := c.do(ctx, call{method: http.MethodPost, path: "/v1/servers/join", in: ServersJoinRequest{Addresses: addresses}}, out)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// RaftPeers lists the Raft peers.
func (c *Client) RaftPeers(ctx context.Context) (*RaftPeerList, error) {
	out := new(RaftPeerList)
	if _, err := c.get(ctx, "/v1/operator/raft/peers", nil, out); err != nil {
		return nil, err
	}
	return out, nil
}

// AddRaftPeer lets a removed server back in.
func (c *Client) AddRaftPeer(ctx context.Context, id string) (*Changed, error) {
	return c.change(ctx, http.MethodPut, join("v1", "operator", "raft", "peers", id), nil)
}

// RemoveRaftPeer removes a peer, which stays out until it is let back in.
func (c *Client) RemoveRaftPeer(ctx context.Context, id string) (*Changed, error) {
	return c.change(ctx, http.MethodDelete, join("v1", "operator", "raft", "peers", id), nil)
}

// Autopilot tells how the servers are.
func (c *Client) Autopilot(ctx context.Context) (*AutopilotHealth, error) {
	out := new(AutopilotHealth)
	if _, err := c.get(ctx, "/v1/operator/autopilot", nil, out); err != nil {
		return nil, err
	}
	return out, nil
}

// SaveSnapshot writes a snapshot of the whole state to w.
func (c *Client) SaveSnapshot(ctx context.Context, w io.Writer) (int64, error) {
	return c.saveSnapshot(ctx, w, nil)
}

// SaveStaleSnapshot writes what the server that answers has applied to w. It
// needs no leader.
func (c *Client) SaveStaleSnapshot(ctx context.Context, w io.Writer) (int64, error) {
	return c.saveSnapshot(ctx, w, url.Values{"stale": {"true"}})
}

func (c *Client) saveSnapshot(ctx context.Context, w io.Writer, query url.Values) (int64, error) {
	response, err := c.send(ctx, call{method: http.MethodGet, path: "/v1/operator/snapshot", query: query, repeat: true})
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	n, err := io.Copy(w, response.Body)
	if err != nil {
		return n, fmt.Errorf("read snapshot: %w", err)
	}
	if response.ContentLength >= 0 && n != response.ContentLength {
		return n, fmt.Errorf("read snapshot: %w", io.ErrUnexpectedEOF)
	}
	return n, nil
}

// RestoreSnapshot replaces the whole state by the snapshot that r holds. The
// servers refuse one of another cluster or with a wrong checksum.
func (c *Client) RestoreSnapshot(ctx context.Context, r io.Reader) (*Changed, error) {
	return c.restoreSnapshot(ctx, r, nil)
}

// RestoreForeignSnapshot is RestoreSnapshot, and takes a snapshot of another
// cluster too, whose place this one takes.
func (c *Client) RestoreForeignSnapshot(ctx context.Context, r io.Reader) (*Changed, error) {
	return c.restoreSnapshot(ctx, r, url.Values{"foreign": {"true"}})
}

func (c *Client) restoreSnapshot(ctx context.Context, r io.Reader, query url.Values) (*Changed, error) {
	out := new(Changed)
	_, err := c.do(ctx, call{method: http.MethodPut, path: "/v1/operator/snapshot", query: query, upload: r}, out)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// InspectSnapshot checks the snapshot that r holds and tells what is in it.
func (c *Client) InspectSnapshot(ctx context.Context, r io.Reader) (*SnapshotMeta, error) {
	out := new(SnapshotMeta)
	_, err := c.do(ctx, call{method: http.MethodPost, path: "/v1/operator/snapshot/inspect", upload: r}, out)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// AgentSelf describes the agent that the client asks.
func (c *Client) AgentSelf(ctx context.Context) (*AgentSelf, error) {
	out := new(AgentSelf)
	if _, err := c.get(ctx, "/v1/agent/self", nil, out); err != nil {
		return nil, err
	}
	return out, nil
}

// Health asks whether the agent can do its work; no token is needed. An
// agent that cannot answers with an error of code unavailable.
func (c *Client) Health(ctx context.Context) (*Health, error) {
	out := new(Health)
	_, err := c.do(ctx, call{method: http.MethodGet, path: "/v1/agent/health"}, out)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Join asks for an agent's certificate. It is called on a client that was
// made with the CA fingerprint of the join token.
func (c *Client) Join(ctx context.Context, request JoinRequest) (*Joined, error) {
	out := new(Joined)
	_, err := c.do(ctx, call{method: http.MethodPost, path: "/v1/agent/join", in: request}, out)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// RenewLapsed asks for a new certificate in place of one that has expired.
func (c *Client) RenewLapsed(ctx context.Context, request RenewRequest) (*Renewed, error) {
	out := new(Renewed)
	if _, err := c.do(ctx, call{method: http.MethodPost, path: "/v1/agent/renew", in: request}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// Metrics writes the agent's metrics, in Prometheus's text form, to w.
func (c *Client) Metrics(ctx context.Context, w io.Writer) error {
	response, err := c.send(ctx, call{method: http.MethodGet, path: "/metrics", repeat: true})
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(w, response.Body); err != nil {
		return fmt.Errorf("read metrics: %w", err)
	}
	return nil
}

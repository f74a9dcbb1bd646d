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
	out, _, err := read(ctx, c, ServersList, "", nil)
	return out, err
}

// JoinServers tells the agent's gossip of further addresses, host:port.
func (c *Client) JoinServers(ctx context.Context, addresses []string) (*ServersJoined, error) {
	return change(ctx, c, ServersJoin, "", ServersJoinRequest{Addresses: addresses})
}

// RaftPeers lists the Raft peers.
func (c *Client) RaftPeers(ctx context.Context) (*RaftPeerList, error) {
	out, _, err := read(ctx, c, OperatorRaftPeers, "", nil)
	return out, err
}

// AddRaftPeer lets a removed server back in.
func (c *Client) AddRaftPeer(ctx context.Context, id string) (*Changed, error) {
	return change(ctx, c, OperatorRaftAddPeer, id, None{})
}

// RemoveRaftPeer removes a peer, which stays out until it is let back in.
func (c *Client) RemoveRaftPeer(ctx context.Context, id string) (*Changed, error) {
	return change(ctx, c, OperatorRaftRemovePeer, id, None{})
}

// Autopilot reports how the servers are.
func (c *Client) Autopilot(ctx context.Context) (*AutopilotHealth, error) {
	out, _, err := read(ctx, c, OperatorAutopilot, "", nil)
	return out, err
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
	response, err := c.send(ctx, call{method: http.MethodGet, path: OperatorSnapshotSave.path(""), query: query, repeat: true})
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
	return send(ctx, c, OperatorSnapshotRestore, call{path: OperatorSnapshotRestore.path(""), query: query, upload: r})
}

// InspectSnapshot checks the snapshot that r holds and reports what is in it.
func (c *Client) InspectSnapshot(ctx context.Context, r io.Reader) (*SnapshotMeta, error) {
	return send(ctx, c, OperatorSnapshotInspect, call{path: OperatorSnapshotInspect.path(""), upload: r})
}

// AgentSelf describes the agent that the client asks.
func (c *Client) AgentSelf(ctx context.Context) (*AgentSelf, error) {
	out, _, err := read(ctx, c, AgentSelfRead, "", nil)
	return out, err
}

// Health asks whether the agent can do its work; no token is needed. An
// agent that cannot answers with an error of code unavailable.
func (c *Client) Health(ctx context.Context) (*Health, error) {
	return send(ctx, c, AgentHealth, call{path: AgentHealth.path("")})
}

// Join asks for an agent's certificate. It is called on a client that was
// made with the CA fingerprint of the join token.
func (c *Client) Join(ctx context.Context, request JoinRequest) (*Joined, error) {
	return change(ctx, c, AgentJoin, "", request)
}

// RenewLapsed asks for a new certificate in place of one that has expired.
func (c *Client) RenewLapsed(ctx context.Context, request RenewRequest) (*Renewed, error) {
	return change(ctx, c, AgentRenew, "", request)
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

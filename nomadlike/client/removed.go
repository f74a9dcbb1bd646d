package client

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/loop"
	"nomadlike/nomadlike/structs"
)

// ErrRemoved is the cause of Run's error when the node was removed from the
// cluster: its certificate is worth nothing any more.
var ErrRemoved = errors.New("the node was removed")

// refused hears why a server ended or refused the node's stream. Servers are
// known by their certificates, so a node that is told of its removal believes
// it: nothing that it runs is its any more.
func (c *Client) refused(err error) {
	var told *structs.Error
	if err != nil && (!errors.As(err, &told) || told.Code != structs.CodeForbidden && told.Code != structs.CodeConflict) {
		return
	}
	if told != nil && (told.ID == "server.session_superseded" || told.ID == "server.session_lost") {
		return // the next stream mends it
	}
	removed := told != nil && told.ID == "server.node_removed"
	c.mu.Lock()
	news := told != nil && (c.mu.refusal == nil || c.mu.refusal.ID != told.ID)
	first := removed && !c.mu.removed
	c.mu.refusal, c.mu.removed = told, c.mu.removed || removed
	c.mu.Unlock()
	if news {
		c.log.Error("servers do not let this node in", logkey.Reason, told)
	}
	if first {
		c.listener.Assignments(&structs.Assignments{Full: true})
	}
}

// Refusal is why the servers do not let the node in, nil when they do or none
// has said anything.
func (c *Client) Refusal() *structs.Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.refusal
}

// endRemoved ends the agent of a removed node once nothing runs here.
func (c *Client) endRemoved(l *loop.Loop) {
	c.mu.Lock()
	removed, refusal := c.mu.removed, c.mu.refusal
	c.mu.Unlock()
	if removed && c.runs.Idle(l) {
		if refusal == nil {
			refusal = structs.NewError(structs.CodeForbidden, "server.node_removed")
		}
		c.end(structs.NewError(refusal.Code, refusal.ID).Because(ErrRemoved))
	}
}

// machineMark is the same for every agent of a machine, and of no other: what
// tells a node that lost its data directory from another one of its name.
func machineMark(bootID string) string {
	id, err := os.ReadFile("/etc/machine-id")
	if id = bytes.TrimSpace(id); err != nil || len(id) == 0 {
		id = []byte(bootID)
	}
	if len(id) == 0 {
		return ""
	}
	sum := sha256.Sum256(append([]byte("nomadlike machine "), id...))
	return hex.EncodeToString(sum[:16])
}

package api

import "context"

// SSHAuthority is by what clients of ssh know the tasks of a cluster.
type SSHAuthority struct {
	Key string `json:"key"` // as a line of known_hosts has it: "ssh-ed25519 AAAA…"
}

// SSHAuthority reads the key that certifies the host keys of tasks.
func (c *Client) SSHAuthority(ctx context.Context) (*SSHAuthority, error) {
	out, _, err := read(ctx, c, SSHAuthorityRead, "", nil)
	return out, err
}

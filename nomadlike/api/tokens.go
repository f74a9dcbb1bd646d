package api

import (
	"context"

	"nomadlike/nomadlike/structs"
)

// BootstrapToken makes the first management token with the one-time setup
// secret; it works once in the life of a cluster.
func (c *Client) BootstrapToken(ctx context.Context, secret string) (*NewToken, error) {
	return change(ctx, c, TokensBootstrap, "", BootstrapRequest{Secret: secret})
}

// Tokens returns one page of the tokens.
func (c *Client) Tokens(ctx context.Context, query *Query) (*TokenList, *Meta, error) {
	return read(ctx, c, TokensList, "", query.values())
}

// CreateToken makes a token. Its secret is in the answer and nowhere else.
func (c *Client) CreateToken(ctx context.Context, request TokenRequest) (*NewToken, error) {
	return change(ctx, c, TokensCreate, "", request)
}

// SelfToken reads the token that the client uses.
func (c *Client) SelfToken(ctx context.Context) (*structs.Token, error) {
	out, _, err := read(ctx, c, TokensSelf, "", nil)
	return out, err
}

// Token reads one token by its id.
func (c *Client) Token(ctx context.Context, id string) (*structs.Token, error) {
	out, _, err := read(ctx, c, TokensRead, id, nil)
	return out, err
}

// TokenDeleted answers that a token is revoked.
type TokenDeleted struct {
	Index   uint64 `json:"index"`
	Address string `json:"address,omitempty"` // where its holder, who asked, signs out at the provider, too
}

// DeleteToken revokes a token; what it has open is closed within a second.
func (c *Client) DeleteToken(ctx context.Context, id string) (*TokenDeleted, error) {
	return change(ctx, c, TokensDelete, id, None{})
}

// JoinTokens lists the join tokens.
func (c *Client) JoinTokens(ctx context.Context) (*JoinTokenList, error) {
	out, _, err := read(ctx, c, JoinTokensList, "", nil)
	return out, err
}

// CreateJoinToken makes a join token for new agents.
func (c *Client) CreateJoinToken(ctx context.Context, request JoinTokenRequest) (*NewJoinToken, error) {
	return change(ctx, c, JoinTokensCreate, "", request)
}

// DeleteJoinToken revokes a join token.
func (c *Client) DeleteJoinToken(ctx context.Context, id string) (*Changed, error) {
	return change(ctx, c, JoinTokensDelete, id, None{})
}

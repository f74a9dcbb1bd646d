package api

import (
	"context"
	"net/http"

	"nomadlike/nomadlike/structs"
)

// BootstrapToken makes the first management token with the one-time setup
// secret; it works once in the life of a cluster.
func (c *Client) BootstrapToken(ctx context.Context, secret string) (*NewToken, error) {
	out := new(NewToken)
	_, err := c.do(ctx, call{method: http.MethodPost, path: "/v1/tokens/bootstrap", in: BootstrapRequest{Secret: secret}}, out)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Tokens returns one page of the tokens.
func (c *Client) Tokens(ctx context.Context, query *Query) (*TokenList, *Meta, error) {
	out := new(TokenList)
	meta, err := c.get(ctx, "/v1/tokens", query.values(), out)
	if err != nil {
		return nil, nil, err
	}
	return out, meta, nil
}

// CreateToken makes a token. Its secret is in the answer and nowhere else.
func (c *Client) CreateToken(ctx context.Context, request TokenRequest) (*NewToken, error) {
	out := new(NewToken)
	_, err := c.do(ctx, call{method: http.MethodPost, path: "/v1/tokens", in: request}, out)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// SelfToken reads the token that the client uses.
func (c *Client) SelfToken(ctx context.Context) (*structs.Token, error) {
	out := new(structs.Token)
	if _, err := c.get(ctx, "/v1/tokens/self", nil, out); err != nil {
		return nil, err
	}
	return out, nil
}

// Token reads one token by its id.
func (c *Client) Token(ctx context.Context, id string) (*structs.Token, error) {
	out := new(structs.Token)
	if _, err := c.get(ctx, join("v1", "tokens", id), nil, out); err != nil {
		return nil, err
	}
	return out, nil
}

// DeleteToken revokes a token; what it has open is closed within a second.
func (c *Client) DeleteToken(ctx context.Context, id string) (*Changed, error) {
	return c.change(ctx, http.MethodDelete, join("v1", "tokens", id), nil)
}

// JoinTokens lists the join tokens.
func (c *Client) JoinTokens(ctx context.Context) (*JoinTokenList, error) {
	out := new(JoinTokenList)
	if _, err := c.get(ctx, "/v1/join-tokens", nil, out); err != nil {
		return nil, err
	}
	return out, nil
}

// CreateJoinToken makes a join token for new agents.
func (c *Client) CreateJoinToken(ctx context.Context, request JoinTokenRequest) (*NewJoinToken, error) {
	out := new(NewJoinToken)
	_, err := c.do(ctx, call{method: http.MethodPost, path: "/v1/join-tokens", in: request}, out)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// DeleteJoinToken revokes a join token.
func (c *Client) DeleteJoinToken(ctx context.Context, id string) (*Changed, error) {
	return c.change(ctx, http.MethodDelete, join("v1", "join-tokens", id), nil)
}

package agent

import (
	"context"
	"errors"
	"net"
	"slices"
	"time"
)

const (
	proxyDialTimeout = 2 * time.Second
	serversTried     = 5 // for one connection
)

var errNoServer = errors.New("no server is known")

// relay returns what opens a connection to a server for people who ask a node
// for one; nil on servers, which answer themselves. The server proves what it
// is to the person at the other end.
func (p *clientPart) relay() func(context.Context) (net.Conn, error) {
	if p.config.Server.Enabled {
		return nil
	}
	return func(ctx context.Context) (net.Conn, error) {
		err := errNoServer
		servers := p.serversToAsk()
		for _, addr := range servers[:min(len(servers), serversTried)] {
			dialer := net.Dialer{Timeout: proxyDialTimeout}
			var conn net.Conn
			if conn, err = dialer.DialContext(ctx, "tcp", addr); err == nil {
				return conn, nil
			}
		}
		return nil, err
	}
}

// serversToAsk lists the servers' ports, first that of the server which has
// proven itself to this node and holds its stream.
func (p *clientPart) serversToAsk() []string {
	servers := p.servers()
	if p.client == nil {
		return servers
	}
	held := p.client.Server()
	if held == "" {
		return servers
	}
	return append([]string{held}, slices.DeleteFunc(servers, func(addr string) bool { return addr == held })...)
}

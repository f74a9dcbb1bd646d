package rpc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"nomadlike/nomadlike/auth"
)

// relayGrace is how long the second direction of a relayed connection may
// last after the first has ended.
const relayGrace = 5 * time.Second

// errRelayed ends the handshake of a connection that is meant for a server.
var errRelayed = errors.New("the connection is for a server")

// peekedConn keeps the first bytes of a connection until its TLS hello tells
// whom it is for.
type peekedConn struct {
	net.Conn
	first   []byte
	known   bool // the hello was read: no more bytes are kept
	relayed bool // it is for a server: this agent says nothing to it
}

// Read reads, and keeps what came before the hello was understood.
func (c *peekedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if !c.known {
		c.first = append(c.first, p[:n]...)
	}
	return n, err
}

// Write drops the alert with which crypto/tls ends our side of the handshake.
func (c *peekedConn) Write(p []byte) (int, error) {
	if c.relayed {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// peeking makes hellos for a server end the handshake with errRelayed. The
// connections that config serves must be peekedConns.
func peeking(config *tls.Config) *tls.Config {
	peeked, choose := config.Clone(), config.GetConfigForClient
	peeked.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		conn, ok := hello.Conn.(*peekedConn)
		if !ok {
			return nil, errors.New("the first bytes of the connection are gone")
		}
		conn.known = true
		if hello.ServerName == auth.ServerName && !isMachine(hello) {
			conn.relayed = true
			return nil, errRelayed
		}
		conn.first = nil
		return choose(hello)
	}
	return peeked
}

// relay joins a person's connection with one to a server, byte by byte. TLS
// goes from end to end, so this agent learns nothing but sizes.
func (m *Mux) relay(ctx context.Context, conn *peekedConn) error {
	defer conn.Close()
	dial, cancel := context.WithTimeout(ctx, m.config.HandshakeTimeout)
	defer cancel()
	server, err := m.config.Relay(dial)
	if err != nil {
		return fmt.Errorf("relay connection: %w", err)
	}
	defer server.Close()
	stop := context.AfterFunc(ctx, func() {
		_ = conn.Close()
		_ = server.Close()
	})
	defer stop()
	if _, err := server.Write(conn.first); err != nil {
		return fmt.Errorf("relay connection: %w", err)
	}
	conn.first = nil
	ended := make(chan struct{}, 2)
	go func() {
		_, _ = io.Copy(server, conn.Conn)
		endWriting(server)
		ended <- struct{}{}
	}()
	go func() {
		_, _ = io.Copy(conn.Conn, server)
		endWriting(conn.Conn)
		ended <- struct{}{}
	}()
	<-ended
	deadline := time.Now().Add(relayGrace)
	_, _ = conn.SetDeadline(deadline), server.SetDeadline(deadline)
	<-ended
	return nil
}

// endWriting tells the other end of a socket that nothing more comes.
func endWriting(conn net.Conn) {
	if counted, ok := conn.(*countedConn); ok {
		conn = counted.Conn
	}
	if tcp, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = tcp.CloseWrite() // a connection that broke has ended as well
	}
}

package taskport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// HandshakePatience is how long a task may take to answer Connect.
const HandshakePatience = 30 * time.Second

// ConnsMax is how many connections a caller opens at once on one client: a task's side
// takes 96 channels.
const ConnsMax = 90

// Connect makes a client of the task at the other end of a stream. What answers must be
// certified for host by a cluster's key. The stream is closed on error, and may carry no
// deadlines.
func Connect(stream net.Conn, host string, cluster ssh.PublicKey) (*ssh.Client, error) {
	patience := time.AfterFunc(HandshakePatience, func() { stream.Close() })
	defer patience.Stop()
	checker := &ssh.CertChecker{IsHostAuthority: func(key ssh.PublicKey, _ string) bool {
		return string(key.Marshal()) == string(cluster.Marshal())
	}}
	client, channels, requests, err := ssh.NewClientConn(stream, net.JoinHostPort(host, "22"), &ssh.ClientConfig{
		User: "task", HostKeyCallback: checker.CheckHostKey, HostKeyAlgorithms: []string{ssh.CertAlgoED25519v01},
	})
	if err != nil {
		stream.Close()
		return nil, fmt.Errorf("connect with the task: %w", err)
	}
	return ssh.NewClient(client, channels, requests), nil
}

// Dial has the task connect with a port of its own, wherever on its loopback the
// program listens.
func Dial(ctx context.Context, client *ssh.Client, port int) (net.Conn, error) {
	conn, err := client.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if Nobody(err) {
		if six, other := client.DialContext(ctx, "tcp", net.JoinHostPort("::1", strconv.Itoa(port))); other == nil {
			return six, nil
		}
	}
	return conn, err
}

// Refusal is why the task's side made no connection, in its words; "" when it was
// not that which failed.
func Refusal(err error) string {
	var refused *ssh.OpenChannelError
	if !errors.As(err, &refused) {
		return ""
	}
	return strings.TrimPrefix(refused.Message, "nomadlike: ")
}

// Nobody reports whether no program listened where the task's side dialed.
func Nobody(err error) bool { return strings.HasSuffix(Refusal(err), "connection refused") }

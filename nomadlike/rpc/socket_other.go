//go:build !linux

package rpc

import (
	"net"
	"time"
)

// tuneSocket does nothing where TCP_USER_TIMEOUT does not exist; gRPC's
// pings notice silence there, later. Agents run on Linux; this lets the
// command line build elsewhere.
func tuneSocket(net.Conn, time.Duration) error { return nil }

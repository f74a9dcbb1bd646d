// Package driverplugin carries the driver contract over hashicorp/go-plugin:
// gRPC with mutual TLS made for each pair of processes.
//
// Flow: an external driver's main calls Serve with its driver.Driver; the
// agent's plugins/host starts that program, gets a Client and uses it as the
// driver.Driver that it is. Errors keep their meaning across: errors.Is and
// errors.As work on what a Client returns as on what the driver returned.
//
// Limits: it translates and bounds, no more. Starting, watching and
// restarting plugins is plugins/host's work. Every answer is at most
// MessageBytesMax; every call has a deadline, so a silent plugin costs its
// caller that long and not longer.
package driverplugin

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/proto"
)

// ProtocolVersion is the version of the contract between host and plugins.
//
//	1  2026-11-21  first
const ProtocolVersion = 1

// Name is what the one service of a plugin is dispensed under.
const Name = "driver"

// MessageBytesMax bounds every message in both directions.
const MessageBytesMax = 4 << 20

// Handshake lets host and plugin recognise each other. The cookie is no
// secret: it only tells a person who starts a plugin by hand what it is.
func Handshake() plugin.HandshakeConfig {
	return plugin.HandshakeConfig{
		ProtocolVersion:  ProtocolVersion,
		MagicCookieKey:   "NOMADLIKE_PLUGIN",
		MagicCookieValue: "driver-b0f8a3d2",
	}
}

// Adapter is the go-plugin side of the contract. A plugin sets Impl; a host
// leaves it nil.
type Adapter struct {
	plugin.NetRPCUnsupportedPlugin
	PluginName string
	Impl       driver.Driver
}

// GRPCServer registers the driver with a plugin's server.
func (a *Adapter) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	if a.Impl == nil {
		return errors.New("serve driver plugin: no driver")
	}
	proto.RegisterDriverServiceServer(s, &server{name: a.PluginName, impl: a.Impl})
	return nil
}

// GRPCClient returns the host's *Client.
func (a *Adapter) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, c *grpc.ClientConn) (any, error) {
	return &Client{service: proto.NewDriverServiceClient(c)}, nil
}

// Serve runs a plugin for the agent that has started this process, until the
// agent ends it. A person who starts it by hand is told how it is meant. The
// plugin's main calls it last; impl answers calls from many goroutines.
func Serve(name string, impl driver.Driver) {
	handshake := Handshake()
	if os.Getenv(handshake.MagicCookieKey) != handshake.MagicCookieValue {
		fmt.Fprintf(os.Stderr, "This is the driver plugin %q of nomadlike, contract version %d.\n"+
			"It is not started by hand: put it into the agent's plugin_dir and restart the agent.\n", name, ProtocolVersion)
		os.Exit(1)
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: handshake,
		Plugins:         plugin.PluginSet{Name: &Adapter{PluginName: name, Impl: impl}},
		GRPCServer: func(options []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(options, grpc.MaxRecvMsgSize(MessageBytesMax), grpc.MaxSendMsgSize(MessageBytesMax))...)
		},
		Logger: hclog.New(&hclog.LoggerOptions{Name: name, Level: hclog.Warn, Output: os.Stderr}),
	})
}

// DialOptions bound what a host takes from a plugin.
func DialOptions() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithDefaultCallOptions(
		grpc.MaxCallRecvMsgSize(MessageBytesMax), grpc.MaxCallSendMsgSize(MessageBytesMax))}
}

// Package deviceplugin carries the contract of package device between two
// processes: Serve in the plugin's, a Client in the agent's, over go-plugin
// with gRPC and mutual TLS.
//
// Flow: the host starts the plugin's program, shakes hands and dispenses a
// *Client; its Configure hands over the plugin's configuration, upon which
// Serve's open makes the device.Plugin; every further call becomes a message,
// and errors come back as the sentinels of package device.
//
// Limits: messages are at most MessageBytesMax long, every unary call has a
// deadline, and what a plugin says is cut to the limits of package device
// before anybody sees it: a plugin that goes wrong costs its caller that long
// and not longer.
package deviceplugin

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"nomadlike/plugins/device"
	"nomadlike/plugins/device/proto"
)

// ProtocolVersion is the version of the contract between host and plugins.
//
//	1  2026-11-21  first
const ProtocolVersion = 1

// Name is what the one service of a plugin is dispensed under.
const Name = "device"

// MessageBytesMax bounds every message in both directions.
const MessageBytesMax = 4 << 20

// Setup is what a plugin gets from the agent before anything else.
type Setup struct {
	Config   []byte // JSON from the agent's configuration; empty: none
	StateDir string // absolute, made by the agent; the plugin's own, kept over restarts
}

// Open makes a plugin. It must return soon and not wait for hardware: a
// library that hangs is what Snapshot.Blind is for. An error means that the
// configuration cannot be used.
type Open func(Setup) (device.Plugin, error)

// Handshake lets host and plugin recognise each other. The cookie is no
// secret: it only tells a person who starts a plugin by hand what it is.
func Handshake() plugin.HandshakeConfig {
	return plugin.HandshakeConfig{
		ProtocolVersion:  ProtocolVersion,
		MagicCookieKey:   "NOMADLIKE_PLUGIN",
		MagicCookieValue: "device-4c1e97fa",
	}
}

// Adapter is the go-plugin side of the contract. A plugin sets Open; a host
// leaves it nil.
type Adapter struct {
	plugin.NetRPCUnsupportedPlugin
	PluginName string
	Open       Open
}

// GRPCServer registers the plugin with its program's server.
func (a *Adapter) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	if a.Open == nil {
		return errors.New("serve device plugin: no plugin")
	}
	proto.RegisterDeviceServiceServer(s, &server{name: a.PluginName, open: a.Open})
	return nil
}

// GRPCClient returns the host's *Client.
func (a *Adapter) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, c *grpc.ClientConn) (any, error) {
	return &Client{service: proto.NewDeviceServiceClient(c)}, nil
}

// Serve runs a plugin for the agent that has started this process, until the
// agent ends it. A person who starts it by hand is told how it is meant. The
// plugin's main calls it last; the plugin answers calls from many goroutines.
func Serve(name string, open Open) {
	handshake := Handshake()
	if os.Getenv(handshake.MagicCookieKey) != handshake.MagicCookieValue {
		fmt.Fprintf(os.Stderr, "This is the device plugin %q of nomadlike, contract version %d.\n"+
			"It is not started by hand: put it into the agent's plugin_dir and restart the agent.\n", name, ProtocolVersion)
		os.Exit(1)
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: handshake,
		Plugins:         plugin.PluginSet{Name: &Adapter{PluginName: name, Open: open}},
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

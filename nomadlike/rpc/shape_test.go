package rpc

import (
	"reflect"
	"testing"

	"nomadlike/internal/golden"
	"nomadlike/nomadlike/wire"
)

// Agents of several versions ask each other whether they live.
func TestShapeOfPing(t *testing.T) {
	golden.AssertShape(t, "testdata/shape.golden", wire.ProtocolVersion, golden.Shape(nil, reflect.TypeFor[PingRequest](), reflect.TypeFor[PingReply]()))
}

package gossip

import (
	"reflect"
	"testing"

	"nomadlike/internal/golden"
	"nomadlike/nomadlike/wire"
)

// Members of several versions hear each other's metadata.
func TestShapeOfGossip(t *testing.T) {
	golden.AssertShape(t, "testdata/shape.golden", wire.ProtocolVersion, golden.Shape(nil, reflect.TypeFor[Meta]()))
}

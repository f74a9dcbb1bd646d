package ascend

import (
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device/runtime"
)

// Chain is the first of several libraries that can be opened.
type Chain struct {
	all  []Library
	open Library // nil: none
}

var _ Library = (*Chain)(nil)

// NewChain tries libraries in order at each Open.
func NewChain(libraries ...Library) *Chain { return &Chain{all: libraries} }

// Open opens the first library that it can. The reason is that of the first,
// which says more than that of a fallback.
func (c *Chain) Open() (reason *structs.Reason) {
	c.open, reason = runtime.OpenFirst(c.all)
	return reason
}

// Source names the library that was opened.
func (c *Chain) Source() string { return c.open.Source() }

// Read asks the library that was opened.
func (c *Chain) Read() (Facts, error) { return c.open.Read() }

// Glance asks the library that was opened.
func (c *Chain) Glance() ([]Glance, error) { return c.open.Glance() }

// Sample asks the library that was opened.
func (c *Chain) Sample() (map[Key]Sample, error) { return c.open.Sample() }

// Close closes the library that was opened.
func (c *Chain) Close() {
	if c.open != nil {
		c.open.Close()
	}
	c.open = nil
}

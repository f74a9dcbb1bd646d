package ascend

import (
	"nomadlike/nomadlike/structs"
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
func (c *Chain) Open() *structs.Reason {
	var first *structs.Reason
	for _, library := range c.all {
		reason := library.Open()
		if reason == nil {
			c.open = library
			return nil
		}
		if first == nil {
			first = reason
		}
	}
	return first
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

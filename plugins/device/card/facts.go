package card

import (
	"slices"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/runtime"
)

// Library is the door to what knows the cards. Its methods may block for ever
// and may be called from several goroutines, except that Open and Close have no
// other call beside them.
type Library interface {
	runtime.Library[Facts]
	// Source names what answers, for instance "cndev". Valid after Open.
	Source() string
	// Sample measures all cards of the newest Read, by Card.Index.
	Sample() (map[int]Sample, error)
}

// Facts are what a library says about a node.
type Facts struct {
	Driver  string `json:"driver"`
	Library string `json:"library,omitempty"`
	Cards   []Card `json:"cards"`
}

// Clone copies facts as far as health changes them.
func (f Facts) Clone() Facts {
	f.Cards = slices.Clone(f.Cards)
	return f
}

// Card is one card.
type Card struct {
	ID       string `json:"id,omitempty"` // "": it does not say
	Index    int    `json:"index"`        // under which the vendor's software knows it
	Minor    int    `json:"minor"`        // of its device node; -1: not known
	Name     string `json:"name,omitempty"`
	Bus      string `json:"bus,omitempty"` // as pcie.Normal writes it
	Serial   string `json:"serial,omitempty"`
	Arch     string `json:"arch,omitempty"`
	Firmware string `json:"firmware,omitempty"`
	Memory   uint64 `json:"memory,omitempty"`
	// Linked are the ids of the cards that it reaches over the vendor's links,
	// Links how many of its links are up.
	Linked []string `json:"linked,omitempty"`
	Links  int      `json:"links,omitempty"`
	Width  int      `json:"width,omitempty"` // of its PCI link, in lanes; 0: not known
	// ECC counts uncorrected memory errors since the driver was loaded; nil:
	// the card cannot say.
	ECC        *uint64 `json:"ecc,omitempty"`
	PowerLimit int     `json:"power_limit,omitempty"` // watts

	// Findings are what the library says is wrong with it now.
	Findings []Finding `json:"findings,omitempty"`
	// Unreadable says why the card did not answer; Gone that it is not there
	// any more.
	Unreadable string `json:"unreadable,omitempty"`
	Gone       bool   `json:"gone,omitempty"`
}

// Finding is something that a library says is wrong.
type Finding struct {
	Code   string `json:"code"`             // as in the table
	Detail string `json:"detail,omitempty"` // the library's own words
}

// Find adds a finding, each code once.
func (c *Card) Find(code, detail string) {
	if !slices.ContainsFunc(c.Findings, func(f Finding) bool { return f.Code == code }) {
		c.Findings = append(c.Findings, Finding{Code: code, Detail: detail})
	}
}

// Sample is one measurement of one card.
type Sample struct {
	Gauges    map[string]float64
	Processes []device.Process
}

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

// Sample asks the library that was opened.
func (c *Chain) Sample() (map[int]Sample, error) { return c.open.Sample() }

// Close closes the library that was opened. Open may follow.
func (c *Chain) Close() { c.open.Close() }

package audit

import "fmt"

// Break says in which way a line does not follow the one before.
type Break string

// The ways.
const (
	BreakUnreadable Break = "unreadable" // it is no line of the record
	BreakServer     Break = "server"     // it is of another server's chain
	BreakMissing    Break = "missing"    // lines before it are not there
	BreakOrder      Break = "order"      // its number was there before
	BreakHash       Break = "hash"       // the line before is not the one that it followed when it was written
)

// BrokenError names the first line that does not follow the one before.
type BrokenError struct {
	Line int    // of what was read, from 1
	Seq  uint64 // the line's own number; of an unreadable one that which it should have
	How  Break
}

// Error names the line.
func (e *BrokenError) Error() string {
	return fmt.Sprintf("audit record: line %d (number %d) does not follow the one before: %s", e.Line, e.Seq, e.How)
}

// Chain walks over the lines of one server, in order. The zero value takes any
// server's, from whatever line is the first that is still kept.
type Chain struct {
	Server string // empty: that of the first line
	First  uint64 // number of the first line; 0: there was none
	Head   Head   // the last line that follows
	Lines  int    // read
}

// Next reads a line. On error, which is a BrokenError, the chain stays where it
// is.
func (c *Chain) Next(line []byte) (Record, error) {
	r, err := Parse(line)
	switch {
	case err != nil:
		return r, &BrokenError{c.Lines + 1, c.Head.Seq + 1, BreakUnreadable}
	case c.Server != "" && r.Server != c.Server:
		return r, &BrokenError{c.Lines + 1, r.Seq, BreakServer}
	case c.Head.Seq > 0 && r.Seq > c.Head.Seq+1, c.Head.Seq == 0 && r.Seq == 1 && r.Prev != "", r.Seq > 1 && r.Prev == "":
		return r, &BrokenError{c.Lines + 1, r.Seq, BreakMissing}
	case r.Seq <= c.Head.Seq:
		return r, &BrokenError{c.Lines + 1, r.Seq, BreakOrder}
	case c.Head.Seq > 0 && r.Prev != c.Head.Hash:
		return r, &BrokenError{c.Lines + 1, r.Seq, BreakHash}
	}
	if c.First == 0 {
		c.First = r.Seq
	}
	c.Server, c.Head = r.Server, Head{r.Seq, HashLine(line)}
	c.Lines++
	return r, nil
}

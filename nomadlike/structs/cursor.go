package structs

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Cursor is a place in the stream of events: behind the Place'th event of log
// index Index. Several events share an index, so an index alone does not say
// what a reader knows. Everything up to an index is known at CursorAfter it.
// The zero Cursor is no place.
type Cursor struct {
	Index uint64
	Place int // events of Index that are known; 0: everything before Index is
}

// CursorAfter is the place behind all events of index.
func CursorAfter(index uint64) Cursor { return Cursor{Index: index + 1} }

// Cursor is the place behind the event.
func (e *Event) Cursor() Cursor { return Cursor{Index: e.Index, Place: e.Seq + 1} }

// IsZero reports whether the cursor is no place.
func (c Cursor) IsZero() bool { return c == Cursor{} }

// Compare orders places as events happen.
func (c Cursor) Compare(other Cursor) int {
	return cmp.Or(cmp.Compare(c.Index, other.Index), cmp.Compare(c.Place, other.Place))
}

// String writes the cursor as INDEX.PLACE.
func (c Cursor) String() string { return fmt.Sprintf("%d.%d", c.Index, c.Place) }

// ParseCursor reads what String wrote; ok is false for anything else.
func ParseCursor(text string) (c Cursor, ok bool) {
	index, place, found := strings.Cut(text, ".")
	i, badIndex := strconv.ParseUint(index, 10, 64)
	p, badPlace := strconv.ParseUint(place, 10, 31)
	c = Cursor{Index: i, Place: int(p)}
	return c, found && badIndex == nil && badPlace == nil && i > 0 && c.String() == text
}

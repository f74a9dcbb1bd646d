package directory

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// sid is a security identifier of Windows in binary (MS-DTYP, section 2.4.2.2): a
// revision, how many parts, six bytes of an authority, and the parts, little-endian.
type sid []byte

const (
	sidHead     = 8  // bytes before the parts
	sidPartsMax = 15 // of one
)

// valid reports whether bytes are an identifier with a part that could be a relative one.
func (s sid) valid() bool {
	return len(s) > sidHead && s[0] == 1 && s[1] > 0 && s[1] <= sidPartsMax && len(s) == sidHead+4*int(s[1])
}

// String spells an identifier as Windows does: S-1-5-21-….
func (s sid) String() string {
	authority := binary.BigEndian.Uint64(append([]byte{0, 0}, s[2:sidHead]...))
	var text strings.Builder
	fmt.Fprintf(&text, "S-%d-%d", s[0], authority)
	for at := sidHead; at < len(s); at += 4 {
		fmt.Fprintf(&text, "-%d", binary.LittleEndian.Uint32(s[at:]))
	}
	return text.String()
}

// sibling is the identifier of the same domain with another last part.
func (s sid) sibling(last uint32) sid {
	other := append(sid(nil), s...)
	binary.LittleEndian.PutUint32(other[len(other)-4:], last)
	return other
}

// filter is how a search asks for the entry that has it.
func (s sid) filter() string {
	var text strings.Builder
	text.WriteString("(objectSid=")
	for _, b := range s {
		fmt.Fprintf(&text, `\%02x`, b)
	}
	text.WriteString(")")
	return text.String()
}

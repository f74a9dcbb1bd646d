//go:build linux

package tasklog

import "bytes"

// LineBytesMax bounds one line of a Splitter, its newline not counted.
const LineBytesMax = 64 << 10

// Splitter cuts a stream into lines. A line longer than LineBytesMax comes in
// pieces, so that memory stays bounded whatever a task writes. The zero value
// is ready; it is for one goroutine.
type Splitter struct {
	pending []byte
}

// Feed takes the next bytes and calls emit for every line that is complete
// with them, newline removed. whole is false for a piece of an overlong line
// that goes on with the next call. The line is valid until emit returns.
func (s *Splitter) Feed(data []byte, emit func(line []byte, whole bool)) {
	for len(data) > 0 {
		at := bytes.IndexByte(data, '\n')
		part, rest, whole := data, []byte(nil), false
		if at >= 0 {
			part, rest, whole = data[:at], data[at+1:], true
		}
		if room := LineBytesMax - len(s.pending); len(part) > room {
			part, rest, whole = data[:room], data[room:], false
			s.pending = append(s.pending, part...)
			emit(s.pending, false)
			s.pending = s.pending[:0]
			data = rest
			continue
		}
		data = rest
		switch {
		case !whole:
			s.pending = append(s.pending, part...)
		case len(s.pending) == 0:
			emit(part, true)
		default:
			s.pending = append(s.pending, part...)
			emit(s.pending, true)
			s.pending = s.pending[:0]
		}
	}
}

// Flush emits what is left of a last line without a newline.
func (s *Splitter) Flush(emit func(line []byte, whole bool)) {
	if len(s.pending) > 0 {
		emit(s.pending, false)
		s.pending = nil
	}
}

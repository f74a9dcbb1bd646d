package httpapi

import "testing"

// TestByteRange: what browsers and curl send.
func TestByteRange(t *testing.T) {
	for header, want := range map[string]struct {
		offset, limit int64
		ranged, bad   bool
	}{
		"": {}, "bytes=0-99": {0, 100, true, false}, "bytes=5-": {5, 0, true, false}, "bytes=-7": {-7, 0, true, false},
		"bytes=9-3": {bad: true}, "bytes=x-": {bad: true}, "bytes=-0": {bad: true}, "bytes=0-1,5-6": {}, "lines=1-2": {},
		"bytes=0-9223372036854775807": {0, 0, true, false},
	} {
		offset, limit, ranged, err := byteRange(header)
		if (err != nil) != want.bad || err == nil && (offset != want.offset || limit != want.limit || ranged != want.ranged) {
			t.Errorf("%q gives %d, %d, %v, %v", header, offset, limit, ranged, err)
		}
	}
}

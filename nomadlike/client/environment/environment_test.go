package environment

import (
	"testing"
)

// TestClockSkew: however long a look took, it is no skew.
func TestClockSkew(t *testing.T) {
	for _, c := range []struct{ at, asked, answered, want int64 }{
		{100, 100, 100, 0},
		{100, 100, 115, 0}, // read first, answered late
		{115, 100, 115, 0},
		{122, 100, 115, 7},
		{91, 100, 115, -9},
	} {
		if got := clockSkew(c.at, c.asked, c.answered); got != c.want {
			t.Errorf("a clock at %d between %d and %d: skew %d, want %d", c.at, c.asked, c.answered, got, c.want)
		}
	}
}

package tasklog

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestLater: nothing reaches a log before it is known what to mask, everything does
// afterwards, and what there was no room for is counted.
func TestLater(t *testing.T) {
	texts := []Masked{{Name: "token", Text: []byte("hunter22")}}
	const gone = "\n[withheld: what follows may hold secrets that are no longer known here]\n"
	lost := func(bytes int) string { return fmt.Sprintf("\n[withheld: %d bytes that may hold secrets]\n", bytes) }
	cases := []struct {
		name string
		do   func(l *Later)
		want string
	}{
		{"told in time", func(l *Later) {
			write(l, "er22 of a line\na hunt", "er22 b hun")
			l.Mask(texts)
			write(l, "ter22 c\n")
		}, lost(15) + "a [masked: token] b [masked: token] c\n"},
		{"told before the first byte", func(l *Later) { l.Mask(texts); write(l, "er22", "\r", "hunter22") }, lost(5) + "[masked: token]"},
		{"told twice", func(l *Later) { l.Mask(texts); l.Mask(nil); l.Withhold(); write(l, "\nhunter22") }, lost(1) + "[masked: token]"},
		{"nothing to mask", func(l *Later) { write(l, "\na"); l.Mask(nil); write(l, "b") }, lost(1) + "ab"},
		{"a line without end", func(l *Later) {
			l.Mask(texts)
			write(l, strings.Repeat("x", cutAtMost-1), "xy\n")
		}, lost(cutAtMost) + "y\n"},
		{"more than there is room for", func(l *Later) {
			write(l, "\n"+strings.Repeat("x", 27), "hunter22", "y")
			l.Mask(texts)
			write(l, "hunter22z\nhunter22")
		}, lost(1) + strings.Repeat("x", 27) + lost(4+5+10) + "[masked: token]"},
		{"never told", func(l *Later) { write(l, "hunter22") }, gone + lost(8)},
		{"withheld", func(l *Later) { write(l, "hunter22"); l.Withhold(); write(l, "x"); l.Mask(texts) }, gone + lost(9)},
		{"withheld, and nothing came", func(l *Later) { l.Withhold() }, gone},
	}
	for _, c := range cases {
		synctest.Test(t, func(t *testing.T) {
			var log strings.Builder
			l := NewLater(&log)
			l.max = 32
			c.do(l)
			l.Close(time.Minute)
			if log.String() != c.want {
				t.Errorf("%s: the log has %q, want %q", c.name, log.String(), c.want)
			}
		})
	}
}

func write(l *Later, texts ...string) {
	for _, text := range texts {
		_, _ = l.Write([]byte(text))
	}
}

// TestLaterWaitsAtTheEnd: a log whose stream has ended still waits to be told.
func TestLaterWaitsAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		l := NewLater(&log)
		write(l, "\nhunter22")
		time.AfterFunc(59*time.Second, func() { l.Mask([]Masked{{Name: "token", Text: []byte("hunter22")}}) })
		l.Close(time.Minute)
		if !strings.HasSuffix(log.String(), "]\n[masked: token]") {
			t.Errorf("the log has %q", log.String())
		}
	})
}

package command

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nomadlike/internal/messages"
)

// TestPace tells how fast something goes, and forgets what was long ago.
func TestPace(t *testing.T) {
	now := time.Unix(0, 0)
	var p pace
	p.add(now, 0)
	if p.rate() != 0 {
		t.Errorf("at once: %v", p.rate())
	}
	for range 5 {
		now = now.Add(time.Second)
		p.add(now, 100)
	}
	if p.rate() != 100 {
		t.Errorf("steady: %v", p.rate())
	}
	for range 30 {
		now = now.Add(time.Second)
		p.add(now, 10)
	}
	if p.rate() != 10 {
		t.Errorf("slower since half a minute: %v", p.rate())
	}
	now = now.Add(time.Hour) // it stood still
	p.add(now, 10)
	if rate := p.rate(); rate <= 0 || rate > 1 {
		t.Errorf("after an hour: %v", rate)
	}
	if len(p.marks) > 20 {
		t.Errorf("%d marks", len(p.marks))
	}
}

// TestLeftAt tells how long it will take, where that can be known.
func TestLeftAt(t *testing.T) {
	for _, test := range []struct {
		bytes int64
		rate  float64
		want  time.Duration
		known bool
	}{
		{1000, 100, 10 * time.Second, true},
		{1, 100, time.Second, true},
		{0, 100, 0, true},
		{1000, 0, 0, false},
		{1 << 60, 1, 0, false},
		{-1, 100, 0, false},
	} {
		if got, known := leftAt(test.bytes, test.rate); got != test.want || known != test.known {
			t.Errorf("%d bytes at %v: %v, %t", test.bytes, test.rate, got, known)
		}
	}
}

// TestTransfer is what a terminal shows, and that others are shown nothing.
func TestTransfer(t *testing.T) {
	for _, terminal := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			env := &Env{Stderr: &Screen{Writer: &out, Terminal: terminal}, Language: messages.English}
			show := env.transfer("cli.files.progress", 10<<20)
			show.skip(2 << 20)
			for range 4 {
				<-time.After(time.Second)
				show.add(1 << 20)
			}
			show.wipe()
			lines := strings.Split(strings.TrimSuffix(out.String(), "\r\x1b[K"), "\r\x1b[K")
			if !terminal {
				if out.Len() > 0 {
					t.Errorf("%q", out.String())
				}
				return
			}
			if got, want := lines[len(lines)-1], "downloading: 6MiB of 10MiB, 1MiB/s, 4s left"; got != want {
				t.Errorf("%q, not %q", got, want)
			}
		})
	}
}

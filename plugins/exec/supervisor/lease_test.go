package supervisor

import (
	"testing"
	"time"
)

func TestLeaseEnds(t *testing.T) {
	l := lease{TTL: 10 * time.Second, From: time.Hour}
	for now, want := range map[time.Duration]bool{
		0: false, time.Hour + 10*time.Second: false, time.Hour + 10*time.Second + leaseBehind: true, 2 * time.Hour: true,
	} {
		if l.ended(now) != want {
			t.Errorf("at %s: %v", now, !want)
		}
	}
	if (lease{From: 1}).ended(time.Hour) {
		t.Error("no lease is kept, and it ended")
	}
	if boottime() <= 0 {
		t.Error("no boot time")
	}
}

package session

import (
	"testing"
	"time"
)

func TestLapsed(t *testing.T) {
	at := func(seconds int) time.Duration { return time.Hour + time.Duration(seconds)*time.Second }
	lease := Lease{TTL: 3 * time.Second}.Renew(at(0)).Renew(at(2)) // until 5
	for second, want := range map[int]bool{1: false, 4: false, 5: true, 9: true} {
		if got := lease.Lapsed(at(second)); got != want {
			t.Errorf("at %d s: %t", second, got)
		}
	}
	lease = lease.Renew(at(8)).Renew(at(9))
	for second, want := range map[int]bool{4: false, 5: true, 7: true, 8: false, 11: false, 12: true} {
		if got := lease.Lapsed(at(second)); got != want {
			t.Errorf("after it was given again, at %d s: %t", second, got)
		}
	}
	if (Lease{}).Lapsed(at(0)) {
		t.Error("without leases there is none to be over")
	}
}

// Package clock reads the clocks that the standard library does not offer.
// Wall clock and monotonic time are read with package time, at doors only.
package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// Boottime is the time since the machine started, suspended time included
// (CLOCK_BOOTTIME). Leases count on it, because CLOCK_MONOTONIC stands still
// while a machine sleeps and would stretch a lease.
func Boottime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("read CLOCK_BOOTTIME: " + err.Error()) // every Linux since 2.6.39 has it
	}
	return time.Duration(ts.Nano())
}

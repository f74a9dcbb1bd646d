package supervisor

import (
	"encoding/json"
	"os"
	"syscall"
	"time"
	"unsafe"
)

// The lease of a node is what the servers wait for before they start a strict
// task elsewhere. The agent keeps it in a file and kills such tasks when it
// ends; this process does so when there is no agent to do it.
const (
	leaseLook   = 250 * time.Millisecond
	leaseBehind = 500 * time.Millisecond // the agent comes first
)

// lease is the file's content, in nanoseconds; From is on CLOCK_BOOTTIME.
type lease struct {
	TTL  time.Duration `json:"ttl"`
	From time.Duration `json:"from"`
}

// ended reports whether the lease is over for this process at a boot time.
func (l lease) ended(now time.Duration) bool {
	return l.TTL > 0 && now >= l.From+l.TTL+leaseBehind
}

// enforceLease kills the task when the lease in the file has ended, until the task
// has. A file that cannot be read leaves the last lease as it was.
func (t *task) enforceLease() {
	tick := time.NewTicker(leaseLook)
	defer tick.Stop()
	var known lease
	for {
		if data, err := os.ReadFile(t.spec.Lease); err == nil {
			var read lease
			if json.Unmarshal(data, &read) == nil {
				known = read
			}
		}
		if known.ended(boottime()) {
			t.stop(syscall.SIGKILL, 0)
		}
		select {
		case <-t.ended:
			return
		case <-tick.C:
		}
	}
}

// boottime reads CLOCK_BOOTTIME, which goes on while the machine is suspended;
// 0 when it cannot be read.
func boottime() time.Duration {
	const clockBoottime = 7
	var now syscall.Timespec
	if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&now)), 0); errno != 0 {
		return 0
	}
	return time.Duration(now.Nano())
}

package taskinit

import (
	"encoding/json"
	"os"
	"syscall"
	"time"
	"unsafe"
)

// A strict task ends with the lease of its node: the servers start it elsewhere
// once that is over. The agent keeps the lease in a file and kills first. For an
// agent that is dead or stands still there are two more, neither of which needs
// the engine or the other: the init, which the keeper tells of each lease, kills
// what runs below it, and the keeper kills the init, and so the container.
const (
	leaseLook     = 250 * time.Millisecond
	leaseOfInit   = 500 * time.Millisecond // after its end: the agent comes first
	leaseOfKeeper = 800 * time.Millisecond // and then the init
)

// Lease is what the file holds, in nanoseconds; From is on CLOCK_BOOTTIME, which
// containers share with their node.
type Lease struct {
	TTL  time.Duration `json:"ttl"`
	From time.Duration `json:"from"`
}

// over reports whether the lease has ended for a process that waits so long after its end.
func (l Lease) over(now, behind time.Duration) bool {
	return l.TTL > 0 && now >= l.From+l.TTL+behind
}

// enforceLease reads the lease for the init as long as the keeper lives, and ends
// the container when the init should have done so. A file that cannot be read
// leaves the last lease as it was.
func (k *keeper) enforceLease() {
	tick := time.NewTicker(leaseLook)
	defer tick.Stop()
	for ; ; <-tick.C {
		if data, err := os.ReadFile(k.config.Lease); err == nil {
			var read Lease
			if json.Unmarshal(data, &read) == nil {
				k.mu.Lock()
				k.mu.lease = read
				k.mu.Unlock()
			}
		}
		known := k.leaseNow()
		k.tell(order{Lease: &known})
		if !known.over(boottime(), leaseOfKeeper) {
			continue
		}
		k.mu.Lock()
		pid, ticks := k.mu.initPID, k.mu.ticks
		k.mu.Unlock()
		if pid == 0 {
			k.end(nil) // it must not come to life any more
			return
		}
		if startTicks(pid) == ticks {
			_ = syscall.Kill(pid, syscall.SIGKILL) // the whole container's, since it is its process 1
		}
	}
}

func (k *keeper) leaseNow() Lease {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.mu.lease
}

// enforceLease ends a strict task when the last lease that a keeper told of is
// over, whether or not there is still a keeper.
func (p *process) enforceLease() {
	tick := time.NewTicker(leaseLook)
	defer tick.Stop()
	for ; ; <-tick.C {
		p.mu.Lock()
		known := p.mu.lease
		p.mu.Unlock()
		if known.over(boottime(), leaseOfInit) {
			p.stop(stopRequest{signal: syscall.SIGKILL})
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

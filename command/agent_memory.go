//go:build linux && !cli

package command

import (
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"

	"nomadlike/nomadlike/client/fingerprint"
)

// How seldom a server collects garbage. With thousands of nodes a quarter of its
// processor time goes there at Go's own 100 per cent; with thousands of jobs and
// little to do it would keep twice its data in garbage at 200.
const (
	serverGC      = 200      // per cent of the live heap that garbage may be, at most
	serverGCLeast = 50       // and at least
	serverGarbage = 64 << 20 // bytes of garbage that are allowed when that is more
	serverGCBusy  = 0.10     // share of the processor time in collecting from which on it collects less often
	serverGCQuiet = 0.05     // share below which it may collect more often
	serverGCEvery = time.Second

	// A burst, such as thousands of submissions, leaves garbage behind that nothing
	// collects while there is little to do. After so many quiet seconds, in which
	// less than half a processor was busy, what is held beyond the live heap goes
	// back to the system, if it is worth the collection.
	serverFreeAfter = 10
	serverFreeBusy  = 0.5
	serverFreeLeast = 64 << 20 // bytes

	// Of the memory that its cgroup allows, the rest is for the stacks of threads
	// and for the pages of its log.
	serverMemoryShare = 0.6
)

// nextGC is how much garbage a server may keep, in per cent of its live heap,
// after it had allowed so much and collecting took a share of its processor time.
func nextGC(live uint64, share float64, allowed int) int {
	least := serverGC
	if live > 0 {
		least = int(min(max(serverGarbage*100/live, serverGCLeast), serverGC))
	}
	switch {
	case share > serverGCBusy:
		allowed += max(allowed/4, 1)
	case share < serverGCQuiet:
		allowed -= max(allowed/4, 1)
	}
	return min(max(allowed, least), serverGC)
}

// leftover decides when memory that nothing needs goes back to the system.
type leftover struct {
	quiet int    // seconds
	kept  uint64 // bytes that were held after it last went back
}

// giveBack takes what a second of the process was like: processors that were
// busy, bytes of live heap, and bytes that are held for it. It reports whether
// memory should go back now.
func (l *leftover) giveBack(busy float64, live, held uint64) bool {
	if busy >= serverFreeBusy {
		l.quiet = 0
		return false
	}
	l.quiet++
	if l.quiet < serverFreeAfter || held < live+live/4+serverFreeLeast || held < l.kept+serverFreeLeast {
		return false
	}
	l.quiet = 0
	return true
}

// paceCollection makes the process collect garbage by nextGC, and keep within
// the memory of its cgroup, until stop is called; unless the environment says
// what to do.
func (env *Env) paceCollection() (stop func()) {
	if limit := fingerprint.MemoryMax(); limit > 0 && env.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(float64(limit) * serverMemoryShare))
	}
	if env.Getenv("GOGC") != "" {
		return func() {}
	}
	debug.SetGCPercent(serverGC)
	done := make(chan struct{})
	var pacing sync.WaitGroup
	pacing.Go(func() {
		tick := time.NewTicker(serverGCEvery)
		defer tick.Stop()
		allowed, before := serverGC, readCollection()
		var rest leftover
		for {
			select {
			case <-tick.C:
			case <-done:
				return
			}
			now := readCollection()
			next := nextGC(now.live, now.since(before), allowed)
			if rest.giveBack((now.busy-before.busy)/serverGCEvery.Seconds(), now.live, now.held) {
				debug.FreeOSMemory()
				now = readCollection()
				rest.kept = now.held
			}
			before = now
			if next != allowed {
				allowed = next
				debug.SetGCPercent(allowed)
			}
		}
	})
	return func() {
		close(done)
		pacing.Wait()
	}
}

// collection is what the runtime knew after it collected last.
type collection struct {
	live             uint64  // bytes of heap in use
	held             uint64  // bytes that the runtime has from the system
	collecting, busy float64 // seconds of processor time since the start
}

func readCollection() collection {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"},
		{Name: "/cpu/classes/gc/total:cpu-seconds"},
		{Name: "/cpu/classes/gc/mark/idle:cpu-seconds"},
		{Name: "/cpu/classes/total:cpu-seconds"},
		{Name: "/cpu/classes/idle:cpu-seconds"},
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(samples)
	// Marking with cores that had nothing else to do costs nobody anything.
	idle := samples[2].Value.Float64()
	return collection{
		live: samples[0].Value.Uint64(), held: samples[5].Value.Uint64() - samples[6].Value.Uint64(), collecting: samples[1].Value.Float64() - idle,
		busy: samples[3].Value.Float64() - samples[4].Value.Float64() - idle,
	}
}

// since is the share that collecting had of the processor time after before; 0
// when nothing was collected.
func (c collection) since(before collection) float64 {
	if c.busy <= before.busy {
		return 0
	}
	return (c.collecting - before.collecting) / (c.busy - before.busy)
}

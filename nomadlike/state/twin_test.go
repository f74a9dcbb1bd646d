package state

import (
	"fmt"
	"maps"

	"nomadlike/nomadlike/structs"
)

// chargeTwin books what projects use in the obvious way: it looks at every
// allocation before and after each command.
type chargeTwin struct {
	device, milliCPU map[string]int64 // by project, in milliseconds
}

// step books the allocations that a command ended.
func (c *chargeTwin) step(before, after *Snapshot, now structs.UnixNano) {
	if c.device == nil {
		c.device, c.milliCPU = make(map[string]int64), make(map[string]int64)
	}
	for was := range before.Allocs() {
		is := after.Alloc(was.ID)
		if was.Status.Terminal() || is != nil && !is.Status.Terminal() {
			continue
		}
		span := int64(now)/1e6 - int64(was.PlacedAt)/1e6
		c.device[was.Project] += int64(len(was.Devices)) * span
		c.milliCPU[was.Project] += structs.MilliCPU(was.Spec.CPU) * span
	}
}

// compare tells how the ledgers differ, "" when they do not.
func (c *chargeTwin) compare(s *Snapshot) string {
	device, milliCPU := make(map[string]int64), make(map[string]int64)
	for usage := range s.ProjectUsages() {
		for _, ledger := range usage.Ledgers {
			for _, bucket := range ledger.Buckets {
				device[usage.Project] += bucket.DeviceMs
				milliCPU[usage.Project] += bucket.MilliCPUMs
			}
		}
	}
	for _, sums := range []map[string]int64{c.device, c.milliCPU, device, milliCPU} {
		maps.DeleteFunc(sums, func(_ string, n int64) bool { return n == 0 })
	}
	if maps.Equal(device, c.device) && maps.Equal(milliCPU, c.milliCPU) {
		return ""
	}
	return fmt.Sprintf("I17: booked are %v devices and %v cores, used were %v and %v", device, milliCPU, c.device, c.milliCPU)
}

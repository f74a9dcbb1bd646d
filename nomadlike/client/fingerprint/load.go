package fingerprint

import (
	"strconv"
	"strings"
)

// Load is what a whole machine uses now.
type Load struct {
	CPUSeconds  float64 // busy since the boot, summed over its cores
	MemoryUsed  int64   // bytes that are not available to new processes
	MemoryTotal int64   // bytes
}

// userHertz is the unit of the kernel's counters of processor time; it is the
// same on every architecture that Linux has kept.
const userHertz = 100

// ReadLoad looks at what this machine uses. What cannot be read is 0.
func ReadLoad() Load { return ParseLoad(readSome("/proc/stat", 4<<10), read("/proc/meminfo")) }

// ParseLoad reads /proc/stat, whose first line is enough, and /proc/meminfo.
func ParseLoad(stat, meminfo string) Load {
	load := Load{CPUSeconds: parseBusy(stat)}
	total, err := parseMemTotal(meminfo)
	if err != nil {
		return load
	}
	load.MemoryTotal = total
	if available, ok := parseAvailable(meminfo); ok {
		load.MemoryUsed = max(total-available, 0)
	}
	return load
}

// parseBusy sums the processor time of the line "cpu": all but idle time and
// waiting for disks, which are the 4th and 5th. Guests are counted in the time
// of users already.
func parseBusy(stat string) float64 {
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) < 8 || fields[0] != "cpu" {
		return 0
	}
	busy := uint64(0)
	for i, field := range fields[1:] {
		n, err := strconv.ParseUint(field, 10, 63)
		if err != nil {
			return 0
		}
		if i != 3 && i != 4 && i < 8 {
			busy += n
		}
	}
	return float64(busy) / userHertz
}

func parseAvailable(meminfo string) (int64, bool) {
	for line := range strings.Lines(meminfo) {
		if rest, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			fields := strings.Fields(rest)
			if len(fields) != 2 || fields[1] != "kB" {
				return 0, false
			}
			kib, err := strconv.ParseInt(fields[0], 10, 64)
			return kib << 10, err == nil && kib >= 0 && kib <= 1<<50
		}
	}
	return 0, false
}

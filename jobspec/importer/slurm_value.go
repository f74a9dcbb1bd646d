package importer

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"nomadlike/nomadlike/structs"
)

// slurmTime reads a time limit: minutes, minutes:seconds, hours:minutes:seconds,
// days-hours, days-hours:minutes or days-hours:minutes:seconds. 0 is none.
func slurmTime(text string) (limit time.Duration, none, ok bool) {
	switch strings.ToLower(text) {
	case "infinite", "unlimited", "-1", "0":
		return 0, true, true
	}
	days, rest, withDays := strings.Cut(text, "-")
	if !withDays {
		days, rest = "0", text
	}
	parts := strings.Split(rest, ":")
	if len(parts) > 3 {
		return 0, false, false
	}
	units := [][]time.Duration{{time.Minute}, {time.Minute, time.Second}, {time.Hour, time.Minute, time.Second}}[len(parts)-1]
	if withDays {
		units = []time.Duration{time.Hour, time.Minute, time.Second}
	}
	const most = 1_000_000 // far above what a limit may be, far below what overflows
	whole, err := strconv.ParseUint(days, 10, 32)
	if err != nil || whole > most/24 {
		return 0, false, false
	}
	limit = time.Duration(whole) * 24 * time.Hour
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 32)
		if err != nil || n > 60*most {
			return 0, false, false
		}
		limit += time.Duration(n) * units[i]
	}
	if limit > time.Duration(structs.SpanMax) {
		return 0, false, false
	}
	return limit, limit == 0, true
}

// slurmSize reads an amount of memory; a bare number counts in MiB.
func slurmSize(text string) (int64, bool) {
	lower := strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(text), "b"), "i")
	unit := structs.MiB
	for letter, factor := range map[string]int64{"k": structs.KiB, "m": structs.MiB, "g": structs.GiB, "t": structs.TiB} {
		if short, found := strings.CutSuffix(lower, letter); found {
			lower, unit = short, factor
			break
		}
	}
	n, err := strconv.ParseInt(lower, 10, 64)
	if err != nil || n < 0 || n > structs.MemoryMax/unit {
		return 0, false
	}
	return n * unit, true
}

// slurmCount reads a whole number from 1 on.
func slurmCount(text string) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && n > 0 && n <= structs.JobRanksMax
}

// gpus is a number of cards, of a model perhaps.
type gpus struct {
	model string
	count int
}

// slurmGPUs reads [model:]count, or the model alone for one.
func slurmGPUs(text string) (gpus, bool) {
	model, count, both := strings.Cut(text, ":")
	if !both {
		if n, err := strconv.Atoi(text); err == nil {
			return gpus{"", n}, n >= 0 && n <= structs.DeviceCountMax
		}
		return gpus{text, 1}, text != ""
	}
	n, err := strconv.Atoi(count)
	return gpus{model, n}, err == nil && n >= 0 && n <= structs.DeviceCountMax && model != ""
}

// nodeCount reads a number of nodes or a range of them, "2" or "2-4".
func nodeCount(text string) (least, most int, ok bool) {
	low, high, isRange := strings.Cut(text, "-")
	if !isRange {
		high = low
	}
	least, one := slurmCount(low)
	most, two := slurmCount(high)
	return least, most, one && two && least <= most && most <= structs.NodesMax
}

// hostsMax bounds a list of hosts.
const hostsMax = 1024

// hostlist expands a list of hosts, "gpu[01-03,07],login1".
func hostlist(text string) ([]string, bool) {
	var hosts []string
	for _, part := range splitOutside(text) {
		open := strings.IndexByte(part, '[')
		if open < 0 {
			hosts = append(hosts, part)
			continue
		}
		end := strings.IndexByte(part, ']')
		if end < open || strings.ContainsAny(part[end+1:], "[]") {
			return nil, false
		}
		for _, span := range strings.Split(part[open+1:end], ",") {
			low, high, isRange := strings.Cut(span, "-")
			if !isRange {
				high = low
			}
			from, err := strconv.Atoi(low)
			to, err2 := strconv.Atoi(high)
			if err != nil || err2 != nil || from < 0 || to < from || to-from >= hostsMax {
				return nil, false
			}
			for n := from; n <= to; n++ {
				hosts = append(hosts, fmt.Sprintf("%s%0*d%s", part[:open], len(low), n, part[end+1:]))
			}
			if len(hosts) > hostsMax {
				return nil, false
			}
		}
	}
	return hosts, len(hosts) > 0
}

// splitOutside parts a list at its commas, those in brackets aside.
func splitOutside(text string) []string {
	var parts []string
	depth, start := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '[', '(':
			depth++
		case ']', ')':
			depth--
		case ',':
			if depth <= 0 {
				parts = append(parts, text[start:i])
				start = i + 1
			}
		}
	}
	return append(parts, text[start:])
}

// apart is how far numbers lie from each other, 0 where that differs.
func apart(ids []int) int {
	if len(ids) == 1 {
		return 1
	}
	step := ids[1] - ids[0]
	for i := 2; i < len(ids); i++ {
		if ids[i]-ids[i-1] != step {
			return 0
		}
	}
	return step
}

// signals that a job file knows, by name and by number.
var signals = map[string]string{
	"HUP": "SIGHUP", "1": "SIGHUP", "INT": "SIGINT", "2": "SIGINT", "QUIT": "SIGQUIT", "3": "SIGQUIT",
	"TERM": "SIGTERM", "15": "SIGTERM", "USR1": "SIGUSR1", "10": "SIGUSR1", "USR2": "SIGUSR2", "12": "SIGUSR2",
}

// slurmSignal reads [{R|B}:]SIGNAL[@SECONDS].
func slurmSignal(text string) (name string, before time.Duration, shell, ok bool) {
	if scope, rest, scoped := strings.Cut(text, ":"); scoped {
		shell = strings.Contains(strings.ToUpper(scope), "B")
		text = rest
	}
	word, at, timed := strings.Cut(text, "@")
	before = time.Minute
	if timed {
		n, err := strconv.Atoi(at)
		if err != nil || n < 1 || n > 65535 {
			return "", 0, false, false
		}
		before = time.Duration(n) * time.Second
	}
	name, ok = signals[strings.TrimPrefix(strings.ToUpper(word), "SIG")]
	return name, before, shell, ok
}

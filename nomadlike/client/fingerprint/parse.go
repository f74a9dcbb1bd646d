package fingerprint

import (
	"bufio"
	"fmt"
	"strconv"
	"strings"
)

// attributeMax bounds the value of one attribute, in bytes.
const attributeMax = 256

// parseMemTotal reads the machine's memory in bytes from /proc/meminfo.
func parseMemTotal(text string) (int64, error) {
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, "MemTotal:")
		if !ok {
			continue
		}
		fields := strings.Fields(rest)
		if len(fields) != 2 || fields[1] != "kB" {
			break
		}
		kib, err := strconv.ParseInt(fields[0], 10, 64)
		if err != nil || kib <= 0 || kib > 1<<50 {
			break
		}
		return kib << 10, nil
	}
	return 0, fmt.Errorf("parse /proc/meminfo: no MemTotal in kB")
}

// parseOSRelease reads the variables of /etc/os-release; quotes are taken
// off, escapes inside them are not looked at.
func parseOSRelease(text string) map[string]string {
	vars := make(map[string]string)
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok || name == "" || name[0] == '#' {
			continue
		}
		if len(value) >= 2 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0] {
			value = value[1 : len(value)-1]
		}
		vars[name] = value
	}
	return vars
}

// parseCPUModel reads the name of the first processor of /proc/cpuinfo, ""
// when it has none.
func parseCPUModel(text string) string {
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(line, ":")
		switch strings.TrimSpace(name) {
		case "model name", "Model", "CPU part":
			if ok {
				return strings.TrimSpace(value)
			}
		}
	}
	return ""
}

// parseDefaultInterface reads the interface of the IPv4 default route with
// the lowest metric from /proc/net/route, "" when there is none.
func parseDefaultInterface(text string) string {
	best, bestMetric := "", int64(-1)
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		// Iface Destination Gateway Flags RefCnt Use Metric Mask ...
		if len(fields) < 8 || fields[1] != "00000000" || fields[7] != "00000000" {
			continue
		}
		metric, err := strconv.ParseInt(fields[6], 10, 64)
		if err != nil {
			continue
		}
		if bestMetric < 0 || metric < bestMetric {
			best, bestMetric = fields[0], metric
		}
	}
	return best
}

// parseCPUMax reads a limit in cores from cgroup v2's cpu.max; 0 means none.
func parseCPUMax(text string) float64 {
	fields := strings.Fields(text)
	if len(fields) != 2 {
		return 0
	}
	return cores(fields[0], fields[1])
}

// cores divides a CPU quota by its period; 0 means no limit.
func cores(quota, period string) float64 {
	q, err := strconv.ParseFloat(strings.TrimSpace(quota), 64)
	if err != nil || q <= 0 { // "max" and -1 are no limit
		return 0
	}
	p, err := strconv.ParseFloat(strings.TrimSpace(period), 64)
	if err != nil || p <= 0 {
		return 0
	}
	return q / p
}

// parseMemoryMax reads a limit in bytes from cgroup v2's memory.max or v1's
// memory.limit_in_bytes; 0 means none.
func parseMemoryMax(text string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n <= 0 || n >= 1<<62 { // v1 says about 1<<63 for none
		return 0
	}
	return n
}

// cleanAttribute makes a text safe and short enough for an attribute:
// control bytes are dropped.
func cleanAttribute(value string) string {
	value = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\uFFFD' {
			return -1
		}
		return r
	}, value)
	if len(value) > attributeMax {
		value = strings.ToValidUTF8(value[:attributeMax], "")
	}
	return strings.TrimSpace(value)
}

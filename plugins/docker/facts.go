package docker

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"nomadlike/plugins/driver"
)

// Bounds of looking at CDI specifications.
const (
	specFilesMax = 256
	specBytesMax = 1 << 20
)

const capSysResource = 24

// gatherFacts looks at what the engine's ways to devices depend on.
func gatherFacts(info *engineInfo, enginePID int) engineFacts {
	facts := engineFacts{Runtimes: info.Runtimes}
	for _, dir := range info.CDIDirs {
		facts.CDIKinds = append(facts.CDIKinds, cdiKinds(dir)...)
	}
	slices.Sort(facts.CDIKinds)
	facts.CDIKinds = slices.Compact(facts.CDIKinds)
	// The engine registers its driver for NVIDIA when it finds this hook in
	// its own PATH.
	if findIn(pathOf(enginePID), "nvidia-container-runtime-hook") {
		facts.Drivers = append(facts.Drivers, "nvidia")
	}
	return facts
}

// kindPattern finds the kind in a specification in YAML, a key of its top
// level.
var kindPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^["']?kind["']?\s*:\s*["']?([A-Za-z0-9.\-]+/[A-Za-z0-9_.\-]+)`)
})

// kindOf returns the kind that a specification describes, "" for none.
func kindOf(body []byte) string {
	var spec struct {
		Kind string `json:"kind"`
	}
	if json.Unmarshal(body, &spec) == nil {
		return spec.Kind
	}
	if found := kindPattern().FindSubmatch(body); found != nil {
		return string(found[1])
	}
	return ""
}

// cdiKinds lists the kinds of devices that the specifications of a directory
// describe.
func cdiKinds(dir string) (kinds []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, entry := range entries[:min(len(entries), specFilesMax)] {
		if ext := filepath.Ext(entry.Name()); ext != ".yaml" && ext != ".json" && ext != ".yml" {
			continue
		}
		info, err := entry.Info()
		if err != nil || info.Size() > specBytesMax {
			continue
		}
		body, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			continue
		}
		if kind := kindOf(body); kind != "" {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// pathOf returns the PATH of a process, or a usual one.
func pathOf(pid int) string {
	if pid > 0 {
		if environ, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ"); err == nil {
			for entry := range strings.SplitSeq(string(environ), "\x00") {
				if value, ok := strings.CutPrefix(entry, "PATH="); ok {
					return value
				}
			}
		}
	}
	return driver.SearchPathDefault
}

func findIn(search, name string) bool {
	for _, dir := range filepath.SplitList(search) {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode()&0o111 != 0 {
			return true
		}
	}
	return false
}

// enginePID returns the process behind the engine's socket, 0 when that cannot
// be told.
func enginePID(endpoint string) int {
	connection, err := net.Dial("unix", strings.TrimPrefix(endpoint, "unix://"))
	if err != nil {
		return 0
	}
	defer connection.Close()
	raw, err := connection.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0
	}
	pid := 0
	err = raw.Control(func(fd uintptr) {
		if peer, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(peer.Pid)
		}
	})
	if err != nil {
		return 0
	}
	return pid
}

// gatherLimits looks at what the engine's process may give to others. What
// cannot be seen counts as allowed: then the engine itself says no.
func gatherLimits(pid int) limitFacts {
	free := limitFacts{Raise: true}
	if pid <= 0 {
		return free
	}
	proc := "/proc/" + strconv.Itoa(pid)
	status, err := os.ReadFile(proc + "/status")
	if err != nil {
		return free
	}
	limits, err := os.ReadFile(proc + "/limits")
	if err != nil {
		return free
	}
	return parseLimits(string(status), string(limits))
}

// parseLimits reads a process's capabilities and hard limits. Pure.
func parseLimits(status, limits string) limitFacts {
	facts := limitFacts{Raise: true}
	for line := range strings.SplitSeq(status, "\n") {
		if text, ok := strings.CutPrefix(line, "CapEff:"); ok {
			if bits, err := strconv.ParseUint(strings.TrimSpace(text), 16, 64); err == nil {
				facts.Raise = bits&(1<<capSysResource) != 0
			}
		}
	}
	names := map[string]string{
		"Max open files": "nofile", "Max locked memory": "memlock", "Max processes": "nproc", "Max stack size": "stack",
		"Max core file size": "core", "Max cpu time": "cpu", "Max file size": "fsize", "Max data size": "data",
		"Max resident set": "rss", "Max file locks": "locks", "Max pending signals": "sigpending", "Max msgqueue size": "msgqueue",
		"Max nice priority": "nice", "Max realtime priority": "rtprio", "Max realtime timeout": "rttime",
	}
	facts.Hard = make(map[string]int64)
	for line := range strings.SplitSeq(limits, "\n") {
		for title, name := range names {
			rest, ok := strings.CutPrefix(line, title)
			if !ok {
				continue
			}
			fields := strings.Fields(rest)
			if len(fields) < 2 {
				continue
			}
			if value, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
				facts.Hard[name] = value
			} else if fields[1] == "unlimited" {
				facts.Hard[name] = -1
			}
		}
	}
	return facts
}

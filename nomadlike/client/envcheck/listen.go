package envcheck

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// listening is the state of a listening socket in /proc/net/tcp.
const listening = "0A"

// Listener reports who listens on a TCP port of the node: "" for nobody, else
// the program and pid, and whether that is one of processes. A listener whose
// owner cannot be found out is taken for one of them.
func Listener(proc string, port int, processes []Process) (who string, own bool) {
	inodes := sockets(proc, port)
	if len(inodes) == 0 {
		return "", false
	}
	for _, p := range processes {
		if hasSocket(proc, p.PID, inodes) {
			return fmt.Sprintf("%s (%d)", p.Name, p.PID), true
		}
	}
	entries, err := os.ReadDir(proc)
	if err != nil {
		return "", true
	}
	for _, entry := range entries[:min(len(entries), processesMax)] {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || !hasSocket(proc, pid, inodes) {
			continue
		}
		name, _, _ := stat(proc, pid)
		return fmt.Sprintf("%s (%d)", name, pid), false
	}
	return "", true
}

// sockets returns the links of the sockets that listen on a port.
func sockets(proc string, port int) []string {
	var inodes []string
	suffix := fmt.Sprintf(":%04X", port)
	for _, table := range []string{"net/tcp", "net/tcp6"} {
		data, err := os.ReadFile(filepath.Join(proc, table))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(data)) {
			fields := strings.Fields(line)
			if len(fields) > 9 && strings.HasSuffix(fields[1], suffix) && fields[3] == listening {
				inodes = append(inodes, "socket:["+fields[9]+"]")
			}
		}
	}
	return inodes
}

func hasSocket(proc string, pid int, inodes []string) bool {
	dir := filepath.Join(proc, strconv.Itoa(pid), "fd")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(entries, func(entry os.DirEntry) bool {
		target, err := os.Readlink(filepath.Join(dir, entry.Name()))
		return err == nil && slices.Contains(inodes, target)
	})
}

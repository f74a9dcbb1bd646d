package leftover

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Limits of what is read of one process.
const (
	environBytesMax = 2 << 20
	ancestorsMax    = 64
	cgroupBytesMax  = 64 << 10
)

// Proc is the kernel's own door. Root is "/proc"; tests that only read have
// another.
type Proc struct{ Root string }

var _ Door = Proc{}

// Look returns the facts of a process.
func (d Proc) Look(pid int) Facts {
	stat, err := readStat(d.Root, pid)
	if err != nil || stat.state == 'Z' || stat.state == 'X' {
		return Facts{} // a zombie holds nothing any more
	}
	facts := Facts{Exists: true, StartTicks: stat.start, Name: stat.name, Uninterruptible: stat.state == 'D'}
	if text, err := readBounded(d.file(pid, "cgroup"), cgroupBytesMax); err == nil {
		facts.Cgroups = cgroups(text)
	}
	if text, err := readBounded(d.file(pid, "environ"), environBytesMax); err == nil {
		for _, entry := range bytes.Split(text, []byte{0}) {
			if len(entry) > 0 {
				facts.Environment = append(facts.Environment, string(entry))
			}
		}
	}
	for parent := stat.parent; parent > 1 && len(facts.Ancestors) < ancestorsMax; {
		facts.Ancestors = append(facts.Ancestors, parent)
		next, err := readStat(d.Root, parent)
		if err != nil {
			break
		}
		parent = next.parent
	}
	return facts
}

// Kill ends a process by a descriptor of it, so that its number cannot have
// been given to another one in between.
func (d Proc) Kill(pid int, facts Facts) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("open process %d: %w", pid, err)
	}
	defer unix.Close(fd)
	now, err := readStat(d.Root, pid)
	if err != nil || now.start != facts.StartTicks {
		return nil // it has ended
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil {
		return fmt.Errorf("kill process %d: %w", pid, err)
	}
	return nil
}

func (d Proc) file(pid int, name string) string {
	return filepath.Join(d.Root, strconv.Itoa(pid), name)
}

// stat is the part of /proc/<pid>/stat that matters here.
type stat struct {
	name   string
	state  byte
	parent int
	start  uint64
}

func readStat(root string, pid int) (stat, error) {
	text, err := readBounded(Proc{root}.file(pid, "stat"), 4096)
	if err != nil {
		return stat{}, err
	}
	return parseStat(string(text))
}

// parseStat reads a line of /proc/<pid>/stat. The name may contain anything,
// also blanks and brackets.
func parseStat(line string) (stat, error) {
	from, to := strings.IndexByte(line, '('), strings.LastIndexByte(line, ')')
	if from < 0 || to < from {
		return stat{}, fmt.Errorf("parse process status: no name in %.80q", line)
	}
	fields := strings.Fields(line[to+1:])
	const state, parent, start = 0, 1, 19
	if len(fields) <= start || len(fields[state]) != 1 {
		return stat{}, fmt.Errorf("parse process status: %d fields", len(fields))
	}
	s := stat{name: line[from+1 : to], state: fields[state][0]}
	var err error
	if s.parent, err = strconv.Atoi(fields[parent]); err != nil {
		return stat{}, fmt.Errorf("parse process status: %w", err)
	}
	if s.start, err = strconv.ParseUint(fields[start], 10, 64); err != nil {
		return stat{}, fmt.Errorf("parse process status: %w", err)
	}
	return s, nil
}

// cgroups returns the paths of a /proc/<pid>/cgroup, without the hierarchies'
// common root.
func cgroups(text []byte) []string {
	var paths []string
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimRight(line, "\n"), ":", 3)
		if len(parts) == 3 && parts[2] != "/" && parts[2] != "" {
			paths = append(paths, parts[2])
		}
	}
	return paths
}

func readBounded(path string, most int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, most))
}

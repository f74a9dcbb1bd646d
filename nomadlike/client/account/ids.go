package account

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"nomadlike/nomadlike/client/store"
)

// The ids that tasks of projects without an account have. Distributions and
// systemd leave this range free for nobody in particular; it is so large that two
// projects of a cluster hardly ever want the same id.
const (
	UIDMinDefault = 0x70000000
	UIDMaxDefault = 0x77ffffff
	// Where a container has given the agent the first 65536 ids only, those that
	// systemd keeps for users that come and go.
	uidMinSmall = 61184
	uidMaxSmall = 65519

	idsFile = "ids.json"
)

// IDs allots ids to projects: each has the same one on every node, made from
// its name, unless the node has given that to another project before or knows a
// user who has it. What was allotted once stays.
type IDs struct {
	file     string
	min, max int
	known    func(uid int) bool // whether the node has a user of that id

	mu struct {
		sync.Mutex
		of map[string]int // by project
	}
}

// OpenIDs reads what was allotted. A file that cannot be read costs only the ids
// of projects that got another one than their own.
func OpenIDs(dir string, low, high int) (*IDs, error) {
	if low == 0 && high == 0 {
		low, high = defaultIDs()
	}
	t := &IDs{file: filepath.Join(dir, idsFile), min: low, max: high, known: knownUID}
	t.mu.of = make(map[string]int)
	text, err := os.ReadFile(t.file)
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &t.mu.of)
	}
	if err != nil {
		t.mu.of = make(map[string]int)
		return t, fmt.Errorf("read ids of projects: %w", err)
	}
	return t, nil
}

// of returns a project's id. An error means that it could not be kept, or that
// none is left.
func (t *IDs) of(project string) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if uid, ok := t.mu.of[project]; ok && uid >= t.min && uid <= t.max {
		return uid, nil
	}
	taken := make(map[int]bool, len(t.mu.of))
	for _, uid := range t.mu.of {
		taken[uid] = true
	}
	size := t.max - t.min + 1
	start := UIDOf(project, t.min, t.max) - t.min
	for i := range size {
		uid := t.min + (start+i)%size
		if taken[uid] || t.known(uid) {
			continue
		}
		t.mu.of[project] = uid
		if err := t.save(); err != nil {
			delete(t.mu.of, project)
			return 0, err
		}
		return uid, nil
	}
	return 0, fmt.Errorf("allot an id: all of %d to %d are taken", t.min, t.max)
}

func (t *IDs) save() error {
	text, err := json.Marshal(t.mu.of)
	if err == nil {
		err = store.WriteFile(t.file, text, 0o600, true)
	}
	if err != nil {
		return fmt.Errorf("keep ids of projects: %w", err)
	}
	return nil
}

// UIDOf is the id that a project has in a range unless the node has given it to
// another one. Pure.
func UIDOf(project string, low, high int) int {
	sum := sha256.Sum256([]byte(project))
	return low + int(binary.BigEndian.Uint64(sum[:8])%uint64(high-low+1))
}

func knownUID(uid int) bool {
	_, err := user.LookupId(strconv.Itoa(uid))
	return err == nil
}

// defaultIDs returns the range that the agent can use: in a container it may have
// few ids.
func defaultIDs() (low, high int) {
	for _, name := range []string{"uid_map", "gid_map"} {
		text, err := os.ReadFile("/proc/self/" + name)
		if err == nil && !mapped(string(text), UIDMinDefault, UIDMaxDefault) {
			return uidMinSmall, uidMaxSmall
		}
	}
	return UIDMinDefault, UIDMaxDefault
}

// mapped reports whether one line of a map of ids has all of a range. Pure.
func mapped(table string, low, high int) bool {
	for line := range strings.Lines(table) {
		var inside, outside, size int
		if _, err := fmt.Sscan(line, &inside, &outside, &size); err == nil && low >= inside && high < inside+size {
			return true
		}
	}
	return false
}

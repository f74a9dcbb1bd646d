package devices

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"nomadlike/nomadlike/client/store"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
)

// Bounds of the quarantine.
const (
	quarantineFile    = "quarantine.json"
	quarantineMax     = structs.DeviceCountMax
	quarantineFileMax = 1 << 20 // bytes
	faultQuarantine   = "quarantine"
)

// isolated is a device that an operator keeps from new work, whatever its plugin
// says of it.
type isolated struct {
	By     string           `json:"by"`
	Reason string           `json:"reason,omitempty"`
	At     structs.UnixNano `json:"at"`
}

// quarantine remembers such devices over restarts of the agent and of the
// machine, until an operator clears them.
type quarantine struct {
	path string

	mu struct {
		sync.Mutex
		devices map[string]isolated // by id
	}
}

// openQuarantine reads what an earlier process of the agent was told. When the
// file cannot be read the error says so, and the quarantine is empty.
func openQuarantine(dir string) (*quarantine, error) {
	q := &quarantine{path: filepath.Join(dir, quarantineFile)}
	q.mu.devices = make(map[string]isolated)
	info, err := os.Stat(q.path)
	if errors.Is(err, fs.ErrNotExist) {
		return q, nil
	}
	if err == nil && info.Size() > quarantineFileMax {
		err = fmt.Errorf("%d bytes are more than %d", info.Size(), quarantineFileMax)
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(q.path)
	}
	devices := make(map[string]isolated)
	if err == nil {
		err = json.Unmarshal(data, &devices)
	}
	if err != nil {
		return q, fmt.Errorf("read devices in quarantine: %w", err)
	}
	if devices != nil {
		q.mu.devices = devices
	}
	return q, nil
}

// put takes a device from new work.
func (q *quarantine) put(id string, why isolated) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, there := q.mu.devices[id]; !there && len(q.mu.devices) >= quarantineMax {
		return structs.NewError(structs.CodeTooLarge, "state.too_many", "what", "quarantine", "max", quarantineMax)
	}
	before, there := q.mu.devices[id]
	q.mu.devices[id] = why
	err := q.saveLocked()
	if err != nil && there {
		q.mu.devices[id] = before
	} else if err != nil {
		delete(q.mu.devices, id)
	}
	return err
}

// take ends the quarantine of a device; false: it was in none.
func (q *quarantine) take(id string) (bool, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	before, there := q.mu.devices[id]
	if !there {
		return false, nil
	}
	delete(q.mu.devices, id)
	err := q.saveLocked()
	if err != nil {
		q.mu.devices[id] = before
	}
	return true, err
}

func (q *quarantine) saveLocked() error {
	data, err := json.Marshal(q.mu.devices)
	if err == nil {
		err = store.WriteFile(q.path, data, 0o600, true)
	}
	if err != nil {
		return fmt.Errorf("keep devices in quarantine: %w", err)
	}
	return nil
}

// judge marks a device that is in quarantine, and whose own condition keeps no
// work from it already. The attributes of d are not changed in place.
func (q *quarantine) judge(d *structs.Device) {
	q.mu.Lock()
	why, there := q.mu.devices[d.ID]
	q.mu.Unlock()
	if !there || !device.ActionOf(d).TakesWork() {
		return
	}
	*d = device.Clone([]structs.Device{*d})[0]
	id := "client.device_quarantined"
	if why.Reason != "" {
		id = "client.device_quarantined_for"
	}
	device.Judge(d, device.ActCordon, structs.NewReason(id, "device", d.ID, "by", why.By, "reason", why.Reason))
	d.Attrs[device.AttrFault], d.Attrs[device.AttrFaultSince] = faultQuarantine, why.At.Time().UTC().Format(time.RFC3339)
}

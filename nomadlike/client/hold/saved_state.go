package hold

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/client/loop"
	"nomadlike/nomadlike/client/store"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// This file saves what a failed command left in a file system of its own, such
// as a container's, until it is known that nobody will look at it: the servers
// say after the end whether an allocation is held.

// savePatience bounds the saving. What takes longer is not saved, and a hold
// then begins with the image of the job.
const savePatience = 2 * time.Minute

// savedRecord tells a later agent of what is saved of an allocation.
type savedRecord struct {
	Driver string `json:"driver"`
	Image  string `json:"image"`
}

// SaveState saves what a command left, when it failed by itself and its job wants a
// debug hold.
func (o *Holds) SaveState(work context.Context, id string, d driver.Driver) {
	saver, able := d.(driver.StateSaver)
	if !able {
		return
	}
	if _, ok, err := o.plan(id); err != nil || !ok {
		return // nothing may be held
	}
	var state alloc.State
	if err := o.Inbox.Ask(work, func(l *loop.Loop) { state, _ = l.State(id) }); err != nil ||
		state.Report == nil || state.Report.Status != structs.AllocFailed || state.Report.Infra || state.Force != alloc.ForceNone {
		return
	}
	ctx, cancel := context.WithTimeout(work, savePatience)
	defer cancel()
	image, err := saver.SaveState(ctx, alloc.TaskID(id))
	if err == nil {
		var record []byte
		if record, err = json.Marshal(savedRecord{Driver: state.Driver, Image: image}); err == nil {
			err = store.WriteFile(o.Layout.SavedState(id), record, 0o600, false)
		}
	}
	if err != nil {
		o.Log.Warn("what a failed task left is not saved", logkey.AllocID, id, logkey.Error, err)
	}
}

// SavedState returns what is saved of an allocation; ok is false when nothing is.
func (o *Holds) SavedState(id string) (record savedRecord, ok bool) {
	data, err := os.ReadFile(o.Layout.SavedState(id))
	if err != nil {
		return record, false
	}
	return record, json.Unmarshal(data, &record) == nil
}

// DropState removes what is saved of an allocation; it is tried again by the next
// sweep when that fails.
func (o *Holds) DropState(work context.Context, id string) {
	record, ok := o.SavedState(id)
	if !ok {
		return
	}
	if saver, able := o.Drivers[record.Driver].(driver.StateSaver); able {
		if err := saver.DropState(work, alloc.TaskID(id)); err != nil {
			o.Log.Warn("remove what a failed task left", logkey.AllocID, id, logkey.Error, err)
			return
		}
	}
	if err := os.Remove(o.Layout.SavedState(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		o.Log.Warn("remove what a failed task left", logkey.AllocID, id, logkey.Error, err)
	}
}

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

// This file keeps what a failed command left in a file system of its own, such
// as a container's, until it is known that nobody will look at it: the servers
// say after the end whether an allocation is held.

// keepPatience bounds the keeping. What takes longer is not kept, and a hold
// then begins with the image of the job.
const keepPatience = 2 * time.Minute

// keptRecord tells a later agent of what is kept of an allocation.
type keptRecord struct {
	Driver string `json:"driver"`
	Image  string `json:"image"`
}

// KeepLeft keeps what a command left, when it failed by itself and its job wants a
// debug hold.
func (o *Holds) KeepLeft(work context.Context, id string, d driver.Driver) {
	keeper, able := d.(driver.Keeper)
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
	ctx, cancel := context.WithTimeout(work, keepPatience)
	defer cancel()
	image, err := keeper.Keep(ctx, alloc.TaskID(id))
	if err == nil {
		var record []byte
		if record, err = json.Marshal(keptRecord{Driver: state.Driver, Image: image}); err == nil {
			err = store.WriteFile(o.Layout.Kept(id), record, 0o600, false)
		}
	}
	if err != nil {
		o.Log.Warn("what a failed task left is not kept", logkey.AllocID, id, logkey.Error, err)
	}
}

// LeftBy gives what is kept of an allocation; ok is false when nothing is.
func (o *Holds) LeftBy(id string) (record keptRecord, ok bool) {
	data, err := os.ReadFile(o.Layout.Kept(id))
	if err != nil {
		return record, false
	}
	return record, json.Unmarshal(data, &record) == nil
}

// DropLeft removes what is kept of an allocation; it is tried again by the next
// sweep when that fails.
func (o *Holds) DropLeft(work context.Context, id string) {
	record, ok := o.LeftBy(id)
	if !ok {
		return
	}
	if keeper, able := o.Drivers[record.Driver].(driver.Keeper); able {
		if err := keeper.Unkeep(work, alloc.TaskID(id)); err != nil {
			o.Log.Warn("remove what a failed task left", logkey.AllocID, id, logkey.Error, err)
			return
		}
	}
	if err := os.Remove(o.Layout.Kept(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		o.Log.Warn("remove what a failed task left", logkey.AllocID, id, logkey.Error, err)
	}
}

package client

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/alloc"
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

// keepLeft keeps what a command left, when it failed by itself and its job
// wants a debug hold.
func (c *Client) keepLeft(work context.Context, id string, d driver.Driver) {
	keeper, able := d.(driver.Keeper)
	data, err := os.ReadFile(c.files.hookPlan(id))
	if !able || err != nil {
		return // nothing may be held
	}
	var plan hookPlan
	if err := json.Unmarshal(data, &plan); err != nil || !plan.Debug {
		return
	}
	var state alloc.State
	if err := c.ask(work, func() { state, _ = c.loop.table.State(id) }); err != nil ||
		state.Report == nil || state.Report.Status != structs.AllocFailed || state.Report.Infra || state.Force != alloc.ForceNone {
		return
	}
	ctx, cancel := context.WithTimeout(work, keepPatience)
	defer cancel()
	image, err := keeper.Keep(ctx, alloc.TaskID(id))
	if err == nil {
		var record []byte
		if record, err = json.Marshal(keptRecord{Driver: state.Driver, Image: image}); err == nil {
			err = store.WriteFile(c.files.kept(id), record, 0o600, false)
		}
	}
	if err != nil {
		c.log.Warn("what a failed task left is not kept", logkey.AllocID, id, logkey.Error, err)
	}
}

// leftBy gives what is kept of an allocation; ok is false when nothing is.
func (c *Client) leftBy(id string) (record keptRecord, ok bool) {
	data, err := os.ReadFile(c.files.kept(id))
	if err != nil {
		return record, false
	}
	return record, json.Unmarshal(data, &record) == nil
}

// dropLeft removes what is kept of an allocation; it is tried again by the next
// sweep when that fails.
func (c *Client) dropLeft(work context.Context, id string) {
	record, ok := c.leftBy(id)
	if !ok {
		return
	}
	if keeper, able := c.config.Drivers[record.Driver].(driver.Keeper); able {
		if err := keeper.Unkeep(work, alloc.TaskID(id)); err != nil {
			c.log.Warn("remove what a failed task left", logkey.AllocID, id, logkey.Error, err)
			return
		}
	}
	if err := os.Remove(c.files.kept(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.log.Warn("remove what a failed task left", logkey.AllocID, id, logkey.Error, err)
	}
}

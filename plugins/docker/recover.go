package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/docker/taskinit"
	"nomadlike/plugins/driver"
)

// recordBytesMax bounds a task's record.
const recordBytesMax = driver.HandleStateMax

// Recover takes over a task of an earlier agent.
func (d *Driver) Recover(ctx context.Context, handle driver.Handle) error {
	if handle.Version < 1 || handle.Version > driver.HandleVersion || handle.Driver != Name ||
		!driver.ValidTaskID(handle.TaskID) || len(handle.State) > driver.HandleStateMax {
		return fmt.Errorf("recover task %q: handle is not one of this driver", handle.TaskID)
	}
	t := newTask(d, handle.TaskID)
	if err := d.known.Add(t.id, t); err != nil {
		if errors.Is(err, driver.ErrTaskExists) {
			return nil
		}
		return err
	}
	if err := t.load(ctx, handle); err != nil {
		d.known.Forget(t.id)
		return err
	}
	if t.record.ContainerID == "" {
		t.lose("docker.container_gone") // its start was never finished
		return nil
	}
	if !d.known.Go(t.watch) {
		d.known.Forget(t.id)
		return fmt.Errorf("recover task %s: %w", t.id, driver.ErrUnavailable)
	}
	return nil
}

// load gets what is known of a task from its own record, from the handle, or
// from the labels of a container.
func (t *task) load(ctx context.Context, handle driver.Handle) error {
	own, err := readRecord(t.dir(), t.id)
	if err != nil {
		own, err = decodeRecord(handle.State, t.id)
	}
	if err == nil {
		t.record = own
	}
	if t.record.ContainerID == "" {
		found, err := t.home.engine.list(ctx, map[string]string{
			labelCluster: t.home.cluster, labelNode: t.home.node, labelTask: string(t.id),
		})
		if err != nil {
			return fmt.Errorf("recover task %s: %w", t.id, engineError(err))
		}
		if len(found) > 0 {
			t.record.ContainerID = found[0].ID
		}
	}
	t.record.Version, t.record.TaskID = recordVersion, t.id
	if t.record.LogDir == "" {
		// Where its output belongs is not known any more; it must go somewhere.
		rotation := driver.LogRotation{}.WithDefaults()
		t.record.LogDir, t.record.LogFiles, t.record.LogBytes = filepath.Join(t.dir(), "logs"), rotation.MaxFiles, rotation.MaxBytes
		t.record.Unsure = true
	}
	if _, err := os.Lstat(filepath.Join(t.dir(), taskinit.DoorDir)); errors.Is(err, os.ErrNotExist) {
		t.stray = true
	}
	t.doubtful = true
	if err := os.MkdirAll(t.dir(), 0o700); err != nil {
		return fmt.Errorf("recover task %s: %w", t.id, err)
	}
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	if state, err := t.home.engine.inspect(ctx, t.record.ContainerID); err == nil {
		t.paused.Store(state.Paused)
	}
	return nil
}

func readRecord(dir string, id driver.TaskID) (record, error) {
	path := filepath.Join(dir, recordFile)
	info, err := os.Lstat(path)
	if err != nil {
		return record{}, err
	}
	if !info.Mode().IsRegular() || info.Size() > recordBytesMax {
		return record{}, fmt.Errorf("read record of task %s: not a record", id)
	}
	body, err := os.ReadFile(path)
	if err != nil {
		return record{}, err
	}
	return decodeRecord(body, id)
}

// decodeRecord reads a record and refuses one of another task.
func decodeRecord(body []byte, id driver.TaskID) (record, error) {
	var r record
	if err := json.Unmarshal(body, &r); err != nil {
		return record{}, fmt.Errorf("decode record of task %s: %w", id, err)
	}
	if r.TaskID != id || r.Version < 1 || r.Version > recordVersion || !hexadecimal(r.ContainerID) || r.LogDir != "" && !filepath.IsAbs(r.LogDir) {
		return record{}, fmt.Errorf("decode record of task %s: not its own", id)
	}
	return r, nil
}

// hexadecimal reports whether text is empty or a container's id.
func hexadecimal(text string) bool {
	return len(text) <= 64 && strings.Trim(text, "0123456789abcdef") == ""
}

// List names the tasks that have a directory here, and the containers with
// this node's labels, whether this driver knows them or not. A caller that wants to be
// rid of one recovers and destroys it.
func (d *Driver) List(ctx context.Context) ([]driver.Handle, error) {
	entries, err := os.ReadDir(d.home.dir)
	if err != nil {
		return nil, fmt.Errorf("list docker tasks: %w", err)
	}
	known := make(map[driver.TaskID]driver.Handle)
	for _, entry := range entries {
		id := driver.TaskID(entry.Name())
		if !entry.IsDir() || !driver.ValidTaskID(id) {
			continue
		}
		t := newTask(d, id)
		if own, err := readRecord(t.dir(), id); err == nil {
			t.record = own
		} else {
			t.record = record{Version: recordVersion, TaskID: id}
		}
		known[id] = t.handle()
	}
	labelled, err := d.home.engine.list(ctx, map[string]string{labelCluster: d.config.Cluster, labelNode: d.config.Node})
	if err != nil && len(known) == 0 && !errors.Is(err, driver.ErrUnavailable) {
		return nil, fmt.Errorf("list docker tasks: %w", err)
	}
	for _, c := range labelled { // without an engine there are the directories
		id := driver.TaskID(c.Labels[labelTask])
		if _, listed := known[id]; listed || !driver.ValidTaskID(id) {
			continue
		}
		t := newTask(d, id)
		t.record = record{Version: recordVersion, TaskID: id, ContainerID: c.ID, StartedNS: c.StartedNS}
		known[id] = t.handle()
	}
	var handles []driver.Handle
	for _, h := range known {
		handles = append(handles, h)
	}
	slices.SortFunc(handles, func(a, b driver.Handle) int { return strings.Compare(string(a.TaskID), string(b.TaskID)) })
	return handles, nil
}

// Commit keeps a task's container as an image.
func (d *Driver) Commit(ctx context.Context, id driver.TaskID, ref string, note driver.CommitNote) (driver.Prepared, error) {
	t, err := d.known.Find(id)
	if err != nil {
		return driver.Prepared{}, err
	}
	name, err := parseRef(ref)
	if err != nil || name.digest != "" {
		return driver.Prepared{}, structs.NewError(structs.CodeInvalid, "docker.image_name", "image", ref)
	}
	base, err := d.home.engine.image(ctx, t.record.Image.ID)
	if err != nil {
		return driver.Prepared{}, engineError(err)
	}
	made, err := d.home.engine.commit(ctx, t.record.ContainerID, name.String(), base, note)
	if err != nil {
		return driver.Prepared{}, engineError(err)
	}
	image, err := d.home.engine.image(ctx, made)
	if err != nil {
		return driver.Prepared{}, engineError(err)
	}
	return driver.Prepared{Image: name.String(), ID: image.ID, Bytes: image.Bytes}, nil
}

// heldImage begins the names of images of what tasks left behind.
const heldImage = "nomadlike-held:"

// savedImage names the image of what a task left behind.
func savedImage(id driver.TaskID) string { return heldImage + string(id) }

// SaveState saves what an ended task left in its container, as an image that only
// this node has and no collection removes.
func (d *Driver) SaveState(ctx context.Context, id driver.TaskID) (string, error) {
	made, err := d.Commit(ctx, id, savedImage(id), driver.CommitNote{Author: "nomadlike", Comment: "left by task " + string(id)})
	return made.ID, err
}

// DropState removes such an image.
func (d *Driver) DropState(ctx context.Context, id driver.TaskID) error {
	if err := d.home.engine.removeImage(ctx, savedImage(id)); err != nil && !errors.Is(err, errNotFound) {
		return engineError(err)
	}
	return nil
}

// Details tell what a task runs on, for people: the image with its digest and
// how devices came into the container.
type Details struct {
	ContainerID string
	Image       driver.Prepared
	DeviceWays  []string
	StartedAt   time.Time
}

// Details returns what is known of a task's container.
func (d *Driver) Details(id driver.TaskID) (Details, error) {
	t, err := d.known.Find(id)
	if err != nil {
		return Details{}, err
	}
	return Details{
		ContainerID: t.record.ContainerID, Image: t.record.Image, DeviceWays: t.record.Ways, StartedAt: time.Unix(0, t.record.StartedNS),
	}, nil
}

var (
	_ driver.Driver     = (*Driver)(nil)
	_ driver.Lister     = (*Driver)(nil)
	_ driver.Preparer   = (*Driver)(nil)
	_ driver.Committer  = (*Driver)(nil)
	_ driver.StateSaver = (*Driver)(nil)
)

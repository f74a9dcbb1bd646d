package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"nomadlike/internal/logkey"
)

// useLog remembers, over restarts, which images this driver has pulled and
// when each was used last.
type useLog struct {
	path string
	mu   struct {
		sync.Mutex
		images map[string]imageUse
	}
}

type imageUse struct {
	LastUse time.Time `json:"last_use"`
	Pulled  bool      `json:"pulled,omitempty"`
}

func openUseLog(path string) (*useLog, error) {
	l := &useLog{path: path}
	l.mu.images = make(map[string]imageUse)
	body, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read uses of images: %w", err)
	}
	if json.Unmarshal(body, &l.mu.images) != nil || l.mu.images == nil {
		l.mu.images = make(map[string]imageUse) // damaged: no image is known as ours, so none is removed
	}
	return l, nil
}

func (l *useLog) pulled(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	use := l.mu.images[id]
	use.Pulled = true
	l.mu.images[id] = use
}

func (l *useLog) used(id string, at time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	use := l.mu.images[id]
	use.LastUse = at
	l.mu.images[id] = use
	return l.saveLocked()
}

func (l *useLog) get(id string) imageUse {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.images[id]
}

// keep forgets all images but those given.
func (l *useLog) keep(ids []string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := len(l.mu.images)
	for id := range l.mu.images {
		if !slices.Contains(ids, id) {
			delete(l.mu.images, id)
		}
	}
	if len(l.mu.images) == before {
		return nil
	}
	return l.saveLocked()
}

func (l *useLog) saveLocked() error {
	body, err := json.Marshal(l.mu.images)
	if err == nil {
		err = os.WriteFile(l.path+".new", body, 0o600)
	}
	if err == nil {
		err = os.Rename(l.path+".new", l.path)
	}
	if err != nil {
		return fmt.Errorf("record uses of images: %w", err)
	}
	return nil
}

// collectImages removes images now and then, as the rules say.
func (d *Driver) collectImages() {
	timer := time.NewTimer(d.config.GC.Every)
	defer timer.Stop()
	for {
		select {
		case <-d.life.Done():
			return
		case <-timer.C:
		}
		if err := d.CollectImages(d.life, time.Now()); err != nil && d.life.Err() == nil {
			d.log.Debug("images are not collected", logkey.Error, err)
		}
		timer.Reset(d.config.GC.Every)
	}
}

// CollectImages looks at all images once and removes those that the rules
// let go at the given time.
func (d *Driver) CollectImages(ctx context.Context, now time.Time) error {
	images, disk, err := d.storedImages(ctx)
	if err != nil {
		return err
	}
	for _, r := range collect(images, disk, d.config.GC, now) {
		// By its names: an image with several cannot be removed by its id
		// without force, and force would take it from a container.
		names := r.Names
		if len(names) == 0 {
			names = []string{r.ID}
		}
		for _, name := range names {
			if err := d.engine.removeImage(ctx, name); err != nil && !errors.Is(err, errNotFound) {
				return err
			}
		}
		d.log.Info("image removed", "image", r.ID, "names", r.Names, "bytes", r.Bytes, logkey.Reason, r.Reason)
	}
	var ids []string
	for _, i := range images {
		ids = append(ids, i.ID)
	}
	return d.uses.keep(ids)
}

// storedImages gathers what collect decides about.
func (d *Driver) storedImages(ctx context.Context) ([]storedImage, diskUse, error) {
	if err := d.learn(ctx); err != nil {
		return nil, diskUse{}, err
	}
	all, err := d.engine.images(ctx)
	if err != nil {
		return nil, diskUse{}, err
	}
	used, err := d.engine.imagesInUse(ctx)
	if err != nil {
		return nil, diskUse{}, err
	}
	var pinned []string
	for _, name := range d.config.GC.Pinned {
		if found, err := d.engine.image(ctx, name); err == nil {
			pinned = append(pinned, found.ID)
		}
	}
	var stored []storedImage
	for _, i := range all {
		use := d.uses.get(i.ID)
		names := slices.Clone(i.Tags)
		if len(names) == 0 {
			names = slices.Clone(i.Digests)
		}
		stored = append(stored, storedImage{
			ID: i.ID, Names: names, Bytes: i.Bytes, LastUse: use.LastUse, Pulled: use.Pulled,
			InUse: slices.Contains(used, i.ID), Excluded: slices.Contains(pinned, i.ID),
		})
	}
	d.mu.Lock()
	root := d.mu.info.RootDir
	d.mu.Unlock()
	return stored, diskOf(root), nil
}

// diskOf tells how full the disk below a directory is.
func diskOf(dir string) diskUse {
	var stat syscall.Statfs_t
	if dir == "" || syscall.Statfs(dir, &stat) != nil {
		return diskUse{}
	}
	block := stat.Bsize
	return diskUse{Used: int64(stat.Blocks-stat.Bfree) * block, Total: int64(stat.Blocks-stat.Bfree+stat.Bavail) * block}
}

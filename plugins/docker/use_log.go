package docker

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
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
	// Private: it came with the credentials of a job alone, so the registry is asked
	// whether others may have it.
	Private bool `json:"private,omitempty"`
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

// pulled notes that an image came from its registry: with the credentials of a job, or
// without, which everybody on the node could have done.
func (l *useLog) pulled(id string, isNew, byJob bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	use, known := l.mu.images[id]
	use.Pulled = use.Pulled || isNew
	switch {
	case !byJob:
		use.Private = false
	case isNew && !known:
		use.Private = true
	}
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

// retain forgets all images but those given.
func (l *useLog) retain(ids []string) error {
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

package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"nomadlike/internal/logkey"
)

// storeBytesMax bounds the stored health.
const storeBytesMax = 8 << 20

// load reads what an earlier life has stored. A file that cannot be read is
// put aside: faults that are measured come back, others are lost, and the
// error says so.
func load(path string, restore func([]byte) error) error {
	text, err := ReadFile(path, storeBytesMax)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = restore(text)
	}
	if err != nil {
		_ = os.Rename(path, path+".bad")
		return fmt.Errorf("read stored health: %w", err)
	}
	return nil
}

// storeAll saves health whenever it has changed, beside everything else: a slow
// disk holds no event up.
func (p *Plugin[F]) storeAll() {
	for {
		select {
		case <-p.storeNow:
			p.store()
		case <-p.life.Done():
			p.store()
			return
		}
	}
}

// store saves the faults when they have changed. The time at which a fault was
// last seen is no change.
func (p *Plugin[F]) store() {
	p.mu.Lock()
	mark := p.v.Mark()
	if p.o.StateDir == "" || mark == p.stored {
		p.mu.Unlock()
		return
	}
	text, err := json.Marshal(p.v.Stored())
	p.mu.Unlock()
	if err == nil {
		err = WriteFile(p.storePath(), text)
	}
	if err != nil {
		p.o.Logger.Error("health of devices cannot be stored", logkey.Error, err)
		return
	}
	p.stored = mark
}

// WriteFile writes so that a crash leaves either the old or the new.
func WriteFile(path string, text []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+"-*.new")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(file.Name()) // gone already after the rename
	_, err = file.Write(text)
	if err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// ReadFile reads a file of at most most bytes.
func ReadFile(path string, most int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(text)) > most {
		return nil, fmt.Errorf("%s has more than %d bytes", path, most)
	}
	return text, err
}

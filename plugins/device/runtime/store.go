package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
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

// store saves health whenever it has changed, beside everything else: a slow
// disk holds no event up.
type store struct {
	path    string
	log     *slog.Logger
	unsaved func(saved string) (mark string, text []byte, err error)
	now     chan struct{} // holds one token
	saved   string        // the mark of what was saved last; belongs to run
}

func newStore(dir string, log *slog.Logger, unsaved func(saved string) (string, []byte, error)) *store {
	return &store{path: filepath.Join(dir, "health.json"), log: log, unsaved: unsaved, now: make(chan struct{}, 1)}
}

// soon has health saved if it has changed. It does not block.
func (s *store) soon() {
	select {
	case s.now <- struct{}{}:
	default:
	}
}

// run saves until ctx ends, and once more then.
func (s *store) run(ctx context.Context) {
	for {
		select {
		case <-s.now:
			s.save()
		case <-ctx.Done():
			s.save()
			return
		}
	}
}

// save saves the faults when they have changed. The time at which a fault was
// last seen is no change.
func (s *store) save() {
	mark, text, err := s.unsaved(s.saved)
	if err == nil && text == nil {
		return
	}
	if err == nil {
		err = WriteFile(s.path, text)
	}
	if err != nil {
		s.log.Error("health of devices cannot be stored", logkey.Error, err)
		return
	}
	s.saved = mark
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

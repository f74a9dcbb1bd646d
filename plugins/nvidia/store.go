package nvidia

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// storeBytesMax bounds the stored health.
const storeBytesMax = 8 << 20

// loadHealth reads what an earlier life has stored. A file that cannot be
// read is put aside: faults that are measured come back, others are lost, and
// the error says so.
func loadHealth(path string) (*Health, error) {
	fresh := &Health{Units: make(map[string]*Unit)}
	text, err := readFile(path, storeBytesMax)
	if errors.Is(err, fs.ErrNotExist) {
		return fresh, nil
	}
	if err == nil {
		h, decodeErr := decodeHealth(text)
		if decodeErr == nil {
			return h, nil
		}
		err = decodeErr
	}
	_ = os.Rename(path, path+".bad")
	return fresh, fmt.Errorf("read stored health: %w", err)
}

// decodeHealth reads a stored Health and drops what makes no sense.
func decodeHealth(text []byte) (*Health, error) {
	h := &Health{}
	if err := json.Unmarshal(text, h); err != nil {
		return nil, err
	}
	if h.Units == nil {
		h.Units = make(map[string]*Unit)
	}
	for _, uuid := range sortedUnits(h.Units) {
		unit := h.Units[uuid]
		if unit == nil || len(h.Units) > cardsMax || unit.Card.UUID != "" && unit.Card.UUID != uuid {
			delete(h.Units, uuid)
			continue
		}
		unit.Faults = unit.Faults[:min(len(unit.Faults), faultsMax)]
		unit.History = unit.History[:min(len(unit.History), historyMax)]
	}
	return h, nil
}

// saveHealth writes a stored Health so that a crash leaves either the old or
// the new.
func saveHealth(path string, text []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), "health-*.new")
	if err != nil {
		return fmt.Errorf("write health: %w", err)
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
		return fmt.Errorf("write health: %w", err)
	}
	return nil
}

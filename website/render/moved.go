package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"nomadlike/internal/messages"
)

// moved says where sections of a language stand now: "page#anchor" by "page#anchor".
// Error messages, notes and bookmarks go on leading to what they meant.
type moved map[string]string

// movedFile lists the sections that moved, by language.
const movedFile = "moved.json"

func readMoved(source fs.FS) (map[messages.Language]moved, error) {
	data, err := fs.ReadFile(source, movedFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read moved sections: %w", err)
	}
	var all map[messages.Language]moved
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("decode %s: %w", movedFile, err)
	}
	return all, nil
}

// of returns the anchors that moved away from a page with their new URLs, as JSON;
// "" where there are none.
func (m moved) of(language messages.Language, name string) string {
	urls := make(map[string]string)
	for from, to := range m {
		page, anchor, _ := strings.Cut(from, "#")
		if page != name {
			continue
		}
		target, section, found := strings.Cut(to, "#")
		urls[anchor] = url(language, target)
		if found {
			urls[anchor] += "#" + section
		}
	}
	if len(urls) == 0 {
		return ""
	}
	data, err := json.Marshal(urls)
	if err != nil {
		panic(err) // texts are always encoded
	}
	return string(data)
}

// copied are the files that are served as they are.
var copied = []string{"examples/monitoring/*.yml", "examples/monitoring/*.json"}

// copyFiles puts the files that guides hand out to the others.
func copyFiles(files map[string][]byte, source fs.FS) error {
	for _, pattern := range copied {
		names, err := fs.Glob(source, pattern)
		if err != nil {
			return fmt.Errorf("list %s: %w", pattern, err)
		}
		for _, name := range names {
			if files[path.Clean(name)], err = fs.ReadFile(source, name); err != nil {
				return fmt.Errorf("read %s: %w", name, err)
			}
		}
	}
	return nil
}

package website

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// ErrNotBuilt is returned when the binary was built without its guides.
var ErrNotBuilt = errors.New("this binary was built without its guides")

// Topic is a page of the guides.
type Topic struct {
	Name  string `json:"name"` // queue, reference/cli
	Title string `json:"title"`
}

// Topics lists the pages of a language in the order of its index. It fails with
// ErrNotBuilt in a binary without guides.
func Topics(files fs.FS, language string) ([]Topic, error) {
	data, err := read(files, language+"/topics.json")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotBuilt
	}
	if err != nil {
		return nil, err
	}
	var topics []Topic
	if err := json.Unmarshal(data, &topics); err != nil {
		return nil, fmt.Errorf("read topics of guides: %w", err)
	}
	return topics, nil
}

// Page returns the Markdown of a topic. The error wraps fs.ErrNotExist when there
// is no such topic.
func Page(files fs.FS, language, name string) ([]byte, error) {
	if !fs.ValidPath(language + "/" + name) {
		return nil, fmt.Errorf("read guide %q: %w", name, fs.ErrNotExist)
	}
	return read(files, language+"/"+name+".md")
}

func read(files fs.FS, name string) ([]byte, error) {
	file, err := files.Open(name + ".gz")
	if err != nil {
		return nil, fmt.Errorf("open guide: %w", err)
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		return nil, fmt.Errorf("unpack guide %s: %w", name, err)
	}
	data, err := io.ReadAll(unpacked)
	if err != nil {
		return nil, fmt.Errorf("unpack guide %s: %w", name, err)
	}
	return data, nil
}

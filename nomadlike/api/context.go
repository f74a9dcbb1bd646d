package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"nomadlike/nomadlike/structs"
)

// ContextFile is the name of the file in the configuration directory that
// remembers how to reach a cluster.
const ContextFile = "context.json"

// Context is what the command line remembers of a cluster between its runs:
// written by login and by development mode, mode 0600 because of the token.
type Context struct {
	Address string `json:"address"`           // https://host:port, several with commas
	Cluster string `json:"cluster,omitempty"` // the cluster's id
	CA      string `json:"ca"`                // PEM
	Token   string `json:"token,omitempty"`   // secret
	Project string `json:"project,omitempty"` // that requests act in; "": the caller's own

	ExtendAt structs.UnixNano `json:"extend_at,omitempty"` // when the end of the token is put off; 0: never
}

// ContextDir is the directory of the context file: $NOMADLIKE_CONFIG_DIR, or
// nomadlike under the user's configuration directory. Callers pass os.Getenv.
func ContextDir(getenv func(string) string) (string, error) {
	if dir := getenv("NOMADLIKE_CONFIG_DIR"); dir != "" {
		return dir, nil
	}
	if dir := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "nomadlike"), nil
	}
	home := getenv("HOME")
	if home == "" {
		return "", errors.New("find configuration directory: neither NOMADLIKE_CONFIG_DIR nor HOME is set")
	}
	return filepath.Join(home, ".config", "nomadlike"), nil
}

// LoadContext reads the context in dir. A missing file is an empty Context.
func LoadContext(dir string) (Context, error) {
	var context Context
	data, err := os.ReadFile(filepath.Join(dir, ContextFile))
	if errors.Is(err, fs.ErrNotExist) {
		return context, nil
	}
	if err != nil {
		return context, fmt.Errorf("read context: %w", err)
	}
	if err := json.Unmarshal(data, &context); err != nil {
		return Context{}, fmt.Errorf("parse context %s: %w", filepath.Join(dir, ContextFile), err)
	}
	return context, nil
}

// SaveContext writes the context into dir with mode 0600, replacing the old
// one in one step.
func SaveContext(dir string, context Context) error {
	data, err := json.MarshalIndent(context, "", "  ")
	if err != nil {
		return fmt.Errorf("encode context: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make configuration directory: %w", err)
	}
	file, err := os.CreateTemp(dir, ContextFile+".*") // mode 0600
	if err != nil {
		return fmt.Errorf("write context: %w", err)
	}
	_, err = file.Write(append(data, '\n'))
	err = errors.Join(err, file.Close())
	if err == nil {
		err = os.Rename(file.Name(), filepath.Join(dir, ContextFile))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write context: %w", err), os.Remove(file.Name()))
	}
	return nil
}

// KeepContext puts the context of another cluster than the named one aside,
// beside the context file, and returns where it is; "" when there is nothing
// to lose. Contexts of development clusters on loopback are not kept.
func KeepContext(dir, cluster string) (string, error) {
	old, err := LoadContext(dir)
	if err != nil || old.Token == "" || old.Cluster == cluster || strings.Contains(old.Address, "//127.0.0.1:") {
		return "", err
	}
	kept := filepath.Join(dir, strings.TrimSuffix(ContextFile, ".json")+".before-dev.json")
	if err := os.Rename(filepath.Join(dir, ContextFile), kept); err != nil {
		return "", fmt.Errorf("put context aside: %w", err)
	}
	return kept, nil
}

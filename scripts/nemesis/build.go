package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// edit is a change of one file that only the nemesis' binary has. It is laid
// over the sources by the compiler: the tree itself never holds a defect.
type edit struct {
	file     string // from the root of the repository, or below goRoot
	old, new string // old stands there exactly once; "": the file is new
}

// goRoot begins the names of files of the Go distribution.
const goRoot = "GOROOT/"

// thresholds are small in every binary of the nemesis, so that a server that was
// away for a while needs a snapshot, and certificates are renewed all the time.
func thresholds() []edit {
	const config = "nomadlike/consensus/config.go"
	const certificate = "agent/certificate.go"
	return append(clockEdits(), []edit{
		{"nomadlike/auth/ca.go", "AgentTTL = 72 * time.Hour", fmt.Sprintf("AgentTTL = %d * time.Second", certificateLife/time.Second)},
		{"nomadlike/auth/ca.go", "clockSkew = time.Hour", fmt.Sprintf("clockSkew = %d * time.Second", certificateSkew/time.Second)},
		{certificate, "renewRetry   = time.Minute", "renewRetry   = time.Second"},
		{certificate, "renewLook = time.Minute", "renewLook = time.Second"},
		{config, "defaultSnapshotThreshold = 8192", "defaultSnapshotThreshold = 256"},
		{config, "defaultTrailingLogs      = 16384", "defaultTrailingLogs      = 128"},
		{config, "defaultSnapshotInterval  = 30 * time.Second", "defaultSnapshotInterval  = 3 * time.Second"},
		{config, "defaultSegmentBytes = 16 << 20", "defaultSegmentBytes = 1 << 20"},
	}...)
}

// certificateLife is how long certificates of agents are good: half of it is
// over again and again in a run, and a machine that is away for longer has none.
const certificateLife = 30 * time.Second

// certificateSkew is how far clocks may be apart in the nemesis' binary.
const certificateSkew = 10 * time.Second

// build compiles the agent with edits laid over its sources, into a directory of
// its own, which the caller removes.
func build(ctx context.Context, p *plant) (_ string, err error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	dir, err := os.MkdirTemp("/tmp", "nemesis-binary-")
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", err
	}
	edits := thresholds()
	if p != nil {
		edits = append(edits, p.edits...)
	}
	args := []string{"build", "-trimpath", "-o", filepath.Join(dir, "nomadlike")}
	overlay, err := overlay(strings.TrimSpace(string(root)), dir, edits)
	if err != nil {
		return "", err
	}
	args = append(args, "-overlay", overlay)
	if p != nil && p.module != "" {
		file, err := pin(ctx, strings.TrimSpace(string(root)), dir, p.module)
		if err != nil {
			return "", err
		}
		args = append(args, "-modfile", file)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, ".")...)
	cmd.Dir = strings.TrimSpace(string(root))
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the agent: %w: %s", err, out)
	}
	return filepath.Join(dir, "nomadlike"), nil
}

// buildInto builds the agent that is attacked into a file, with the defect of that
// name, "" for none; of a defect it prints the faults that bring it to light, for
// -only, and what one of them must find, with | between.
func buildInto(ctx context.Context, file, defect string) error {
	var planted *plant
	if defect != "" {
		all := plants()
		i := slices.IndexFunc(all, func(p plant) bool { return p.name == defect })
		if i < 0 {
			return fmt.Errorf("no plant is called %s; -list names them", defect)
		}
		planted = &all[i]
	}
	binary, err := build(ctx, planted)
	if err != nil {
		return err
	}
	defer os.RemoveAll(filepath.Dir(binary))
	data, err := os.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("read the agent: %w", err)
	}
	if planted != nil {
		fmt.Println(planted.faults, strings.Join(planted.finds, "|"))
	}
	return os.WriteFile(file, data, 0o755)
}

// overlay writes the edited files and the compiler's list of them.
func overlay(root, dir string, edits []edit) (string, error) {
	distribution, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("find the Go distribution: %w", err)
	}
	texts := map[string]string{}
	for _, e := range edits {
		path := filepath.Join(root, e.file)
		if below, ok := strings.CutPrefix(e.file, goRoot); ok {
			path = filepath.Join(strings.TrimSpace(string(distribution)), below)
		}
		if e.old == "" {
			texts[path] = e.new
			continue
		}
		text, ok := texts[path]
		if !ok {
			data, err := os.ReadFile(path)
			if err != nil {
				return "", fmt.Errorf("read what is to be edited: %w", err)
			}
			text = string(data)
		}
		if n := strings.Count(text, e.old); n != 1 {
			return "", fmt.Errorf("edit %s: %q stands there %d times, not once", e.file, e.old, n)
		}
		texts[path] = strings.Replace(text, e.old, e.new, 1)
	}
	replace := map[string]string{}
	for i, path := range sortedKeys(texts) {
		edited := filepath.Join(dir, fmt.Sprintf("%d.go", i))
		if err := os.WriteFile(edited, []byte(texts[path]), 0o600); err != nil {
			return "", err
		}
		replace[path] = edited
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, list, 0o600)
}

// pin writes a go.mod of its own that demands another version of a module.
func pin(ctx context.Context, root, dir, module string) (string, error) {
	name := filepath.Join(dir, "go.mod")
	for _, file := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, file), data, 0o600); err != nil {
			return "", err
		}
	}
	cmd := exec.CommandContext(ctx, "go", "get", "-modfile", name, module)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("pin %s: %w: %s", module, err, out)
	}
	return name, nil
}

package runtime

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	toolBytesMax  = 4 << 20 // of a tool's output
	complaintsMax = 800     // bytes of what it said when it did not work
)

// Tool is a vendor's program, which may hang with the driver.
type Tool struct {
	Name  string   // "nvidia-smi"
	Path  string   // "": the first of Usual that is there
	Usual []string // absolute paths
	Env   []string // besides PATH and the language
	Limit time.Duration
	Stdin string
	Dir   string // in which it runs; "": that of the plugin
}

// Find returns where the tool is.
func (t *Tool) Find() (string, error) {
	candidates := t.Usual
	if t.Path != "" {
		candidates = []string{t.Path}
	}
	for _, each := range candidates {
		if info, err := os.Stat(each); err == nil && info.Mode().IsRegular() && filepath.IsAbs(each) {
			return each, nil
		}
	}
	return "", fmt.Errorf("%s is not installed here", t.Name)
}

// Run runs the tool and returns what it wrote. The error has that, too.
func (t *Tool) Run(ctx context.Context, arguments ...string) (string, error) {
	path, err := t.Find()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, t.Limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, arguments...)
	cmd.Env = append([]string{"PATH=/usr/local/bin:/usr/local/sbin:/usr/bin:/bin", "LC_ALL=C"}, t.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	cmd.Dir = t.Dir
	cmd.Stdin = strings.NewReader(t.Stdin)
	var output limited
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("run %s: %w: %.*s", path, err, complaintsMax, strings.TrimSpace(output.String()))
	}
	return output.String(), nil
}

// limited keeps the beginning of an output.
type limited struct{ bytes.Buffer }

// Write takes everything and keeps toolBytesMax.
func (l *limited) Write(p []byte) (int, error) {
	if room := toolBytesMax - l.Len(); room > 0 {
		l.Buffer.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}

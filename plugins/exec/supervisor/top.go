package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// showNode mounts every top directory of the node, or of the chosen root.
func (v *view) showNode() error {
	from, own := v.spec.Isolation.Root, v.ownPlaces()
	if from == "" {
		from = "/"
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := entry.Name()
		if own[name] || name == "lost+found" || from != "/" && name == "sys" {
			continue
		}
		path := filepath.Join(from, name)
		switch {
		case entry.Type()&os.ModeSymlink != 0:
			var target string
			if target, err = os.Readlink(path); err == nil {
				err = os.Symlink(target, filepath.Join(v.root.path, name))
			}
		case entry.IsDir():
			if err = syscall.Mkdirat(v.root.fd, name, 0o755); err == nil {
				err = v.root.bindTop(path, name, v.readOnlyNode(name))
			}
		case entry.Type().IsRegular():
			var file int
			if file, err = syscall.Openat(v.root.fd, name, syscall.O_CREAT|syscall.O_EXCL|syscall.O_CLOEXEC, 0o644); err == nil {
				syscall.Close(file)
				err = v.root.bindTop(path, name, v.readOnlyNode(name))
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	if from == "/" {
		return nil
	}
	return v.root.bind("/sys", "/sys", true)
}

func (v *view) readOnlyNode(name string) bool {
	return v.spec.Isolation.Private || v.spec.Isolation.Root != "" || name == "sys"
}

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
				err = os.Symlink(target, filepath.Join(v.rootPath, name))
			}
		case entry.IsDir():
			if err = syscall.Mkdirat(v.root, name, 0o755); err == nil {
				err = v.bindTop(path, name)
			}
		case entry.Type().IsRegular():
			var file int
			if file, err = syscall.Openat(v.root, name, syscall.O_CREAT|syscall.O_EXCL|syscall.O_CLOEXEC, 0o644); err == nil {
				syscall.Close(file)
				err = v.bindTop(path, name)
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	if from == "/" {
		return nil
	}
	return v.bind("/sys", "/sys", true)
}

func (v *view) readOnlyNode(name string) bool {
	return v.spec.Isolation.Private || v.spec.Isolation.Root != "" || name == "sys"
}

// bindTop shows a top directory or file of the node at the place that was made
// for it right in the new root, in half of the system calls of bind: nobody
// else knows that place, so there is nothing to be looked up. A link that has
// taken the place of the source meanwhile is not followed.
func (v *view) bindTop(source, name string) error {
	tree, err := v.cloneTreeAt(atFDCWD, source)
	if err != nil {
		return fmt.Errorf("copy mounts: %w", err)
	}
	defer syscall.Close(tree)
	flags := uint64(mountNoSUID | mountNoDev)
	if v.readOnlyNode(name) {
		flags |= mountReadOnly
	}
	if err := restrictTree(tree, flags); err != nil {
		return fmt.Errorf("restrict mounts: %w", err)
	}
	if err := attachAt(tree, v.root, name); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	return nil
}

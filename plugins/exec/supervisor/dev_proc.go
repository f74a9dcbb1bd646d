package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// shmDefault is the size of /dev/shm for a task that says nothing.
const shmDefault = 64 << 20

// commonNodes are the devices that every task has.
func commonNodes() []string {
	return []string{"null", "zero", "full", "random", "urandom", "tty"}
}

// shmInodes bounds the files of a task's shared memory: each costs the kernel
// memory, whatever its size.
const shmInodes = "65536"

// makeDev makes the task a /dev with the common devices and its own.
func (v *view) makeDev() error {
	if err := v.root.memory("/dev", "size=1m,nr_inodes=2048,mode=0755", true); err != nil {
		return err
	}
	for _, name := range commonNodes() {
		if err := v.bindNode("/dev/"+name, "/dev/"+name); err != nil {
			return fmt.Errorf("/dev/%s: %w", name, err)
		}
	}
	for _, node := range v.spec.Isolation.Nodes {
		if err := v.bindNode(node.Source, node.Target); err != nil {
			return fmt.Errorf("%s: %w", node.Source, err)
		}
	}
	dev := filepath.Join(v.root.path, "dev")
	for link, target := range map[string]string{
		"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2", "ptmx": "pts/ptmx",
	} {
		if err := os.Symlink(target, filepath.Join(dev, link)); err != nil {
			return err
		}
	}
	for _, name := range []string{"pts", "shm", "mqueue"} {
		if err := os.Mkdir(filepath.Join(dev, name), 0o755); err != nil {
			return err
		}
	}
	if err := syscall.Mount("devpts", dev+"/pts", "devpts", syscall.MS_NOSUID|syscall.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620"); err != nil {
		return fmt.Errorf("terminals: %w", err)
	}
	if err := syscall.Mount("mqueue", dev+"/mqueue", "mqueue", memoryFlags|syscall.MS_NOEXEC, ""); err != nil && !errors.Is(err, syscall.ENODEV) {
		return fmt.Errorf("message queues: %w", err)
	}
	v.writable = append(v.writable, "/dev")
	if !v.ownPlaces()["tmp"] && v.spec.Isolation.ShmBytes == 0 {
		return v.root.bind("/dev/shm", "/dev/shm", false)
	}
	size := v.spec.Isolation.ShmBytes
	if size == 0 {
		size = shmDefault
	}
	return v.root.memory("/dev/shm", "mode=1777,nr_inodes="+shmInodes+",size="+strconv.FormatInt(size, 10), false)
}

// bindNode shows a device of the node.
func (v *view) bindNode(source, target string) error {
	fd, err := syscall.Open(source, oPath|syscall.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	return v.root.bindFD(fd, target, mountNoSUID)
}

// makeProc shows the task its own processes, and keeps from it what would
// change the node or tell too much: a task may run as root, whose files these
// are.
func (v *view) makeProc(mount func(path string) error) error {
	if err := os.Mkdir(filepath.Join(v.root.path, "proc"), 0o555); err != nil {
		return err
	}
	if err := mount(filepath.Join(v.root.path, "proc")); err != nil {
		return err
	}
	there := func(path string) bool {
		_, err := os.Lstat(v.root.path + path)
		return err == nil
	}
	for _, path := range []string{"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs"} {
		if there(path) {
			if err := v.root.bind(v.root.path+path, path, true); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
	}
	for _, path := range []string{"/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/latency_stats", "/proc/kmsg", "/proc/kallsyms"} {
		if there(path) {
			if err := v.root.bind(filepath.Join(v.root.stage, "nothing"), path, true); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
	}
	for _, path := range []string{"/proc/acpi", "/proc/scsi"} {
		if there(path) {
			if err := v.root.bind(filepath.Join(v.root.stage, "empty"), path, true); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
	}
	return nil
}

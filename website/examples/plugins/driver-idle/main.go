// Driver-idle is a complete task driver for nomadlike, to begin one's own
// with. Its tasks are processes of the node that take only what others leave:
// they have the lowest priority for processors and disks.
//
// Flow: main lowers its own priority, which all that it starts inherit, and
// serves; idle answers the agent. What a driver of processes has to do, from
// logs to the kill of a whole tree, the driver exec does already, so idle is
// that driver with another name. One for something else than processes
// implements driver.Driver by itself.
//
// Limits: Linux. Its tasks outlive it, as the contract asks: whoever owns them
// is a supervisor process, found again by what lies in the state directory.
// The guide "Driver plugins" explains every step.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/driverplugin"
	"nomadlike/plugins/exec"
	"nomadlike/plugins/exec/supervisor"
)

// name is the driver's name in job files, that of the plugin's file in
// plugin_dir, and the label of its block in the agent's configuration.
const name = "idle"

// niceness is the lowest priority that the kernel knows.
const niceness = 19

// What ioprio_set(2) takes: whose priority, and the class that waits until
// nobody else wants the disk.
const (
	ioprioWhoProcess = 1
	ioprioIdle       = 3 << 13
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == supervisor.Argument {
		os.Exit(supervisor.Main(os.Args[2:])) // this program is also the owner of a task
	}
	d, err := open(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err) // into the agent's log
		os.Exit(1)
	}
	driverplugin.Serve(name, d)
}

// open makes the driver from the arguments in the agent's configuration.
func open(args []string) (*idle, error) {
	var config exec.Config
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.StringVar(&config.StateDir, "state", "/var/lib/nomadlike-idle", "directory of the driver's own, absolute")
	flags.Func("hide", "directory that tasks do not see, such as the agent's data_dir; may be repeated", func(path string) error {
		config.Hidden = append(config.Hidden, path)
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if err := stepBack(); err != nil {
		return nil, err
	}
	config.CgroupParent = "nomadlike-" + name // beside that of the driver exec
	d, err := exec.New(config)
	if err != nil {
		return nil, err
	}
	return &idle{Driver: d}, nil
}

// stepBack sets this process to the lowest priority. The kernel keeps it for
// each thread, and Go has made several: so one thread takes it and executes the
// program anew, whose threads then all inherit it.
func stepBack() error {
	// The raw system call returns 20 less the niceness, so that it is never negative.
	raw, _, errno := syscall.RawSyscall(syscall.SYS_GETPRIORITY, syscall.PRIO_PROCESS, 0, 0)
	if errno != 0 {
		return fmt.Errorf("ask for the priority: %w", errno)
	}
	if 20-int(raw) == niceness {
		return nil
	}
	runtime.LockOSThread()
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, niceness); err != nil {
		return fmt.Errorf("lower the priority: %w", err)
	}
	if _, _, errno := syscall.RawSyscall(syscall.SYS_IOPRIO_SET, ioprioWhoProcess, 0, ioprioIdle); errno != 0 && !errors.Is(errno, syscall.ENOSYS) {
		return fmt.Errorf("lower the priority of disk access: %w", errno)
	}
	if err := syscall.Exec("/proc/self/exe", os.Args, os.Environ()); err != nil {
		return fmt.Errorf("execute the plugin anew: %w", err)
	}
	return nil
}

// idle is the driver. What it does not say itself, exec does.
type idle struct{ *exec.Driver }

var (
	_ driver.Driver = (*idle)(nil)
	_ driver.Lister = (*idle)(nil)
)

// Fingerprint reports whether tasks can run here. The attributes are the node's,
// so each begins with the name of this driver.
func (d *idle) Fingerprint(ctx context.Context) (<-chan driver.Fingerprint, error) {
	theirs, err := d.Driver.Fingerprint(ctx)
	if err != nil {
		return nil, err
	}
	reports := make(chan driver.Fingerprint)
	go func() { // ends with ctx, which closes theirs
		defer close(reports)
		for report := range theirs {
			attributes := map[string]string{"driver." + name + ".nice": strconv.Itoa(niceness)}
			for key, value := range report.Attributes {
				attributes["driver."+name+"."+strings.TrimPrefix(key, "driver."+exec.Name+".")] = value
			}
			report.Attributes = attributes
			select {
			case reports <- report:
			case <-ctx.Done():
				return
			}
		}
	}()
	return reports, nil
}

// Start runs a task. The agent keeps the handle and brings it back to Recover
// after a restart of itself or of this program.
func (d *idle) Start(ctx context.Context, spec driver.TaskSpec) (driver.Handle, error) {
	handle, err := d.Driver.Start(ctx, spec)
	handle.Driver = name
	return handle, err
}

// Recover takes a task over that an earlier process of this program has started.
func (d *idle) Recover(ctx context.Context, handle driver.Handle) error {
	if handle.Driver != name {
		return fmt.Errorf("recover task %q: handle is one of %q", handle.TaskID, handle.Driver)
	}
	handle.Driver = exec.Name
	return d.Driver.Recover(ctx, handle)
}

// List names the tasks that are here, also those that the agent does not know.
func (d *idle) List(ctx context.Context) ([]driver.Handle, error) {
	handles, err := d.Driver.List(ctx)
	for i := range handles {
		handles[i].Driver = name
	}
	return handles, err
}

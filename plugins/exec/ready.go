package exec

import (
	"errors"
	"fmt"
	"net"
	"os"
	osexec "os/exec"
	"syscall"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/plugins/exec/supervisor"
)

const (
	// sparesDefault is how many supervisors wait for a task. Starting one is
	// most of what starting a task takes, and an idle one costs 1 MB.
	sparesDefault = 2
	// sparesMax is how many may wait after tasks that have ended, for others
	// that come soon; after sparesIdle without a start they are sent away.
	sparesMax  = 16
	sparesIdle = 10 * time.Second
	// A program that is still open for writing somewhere cannot be executed.
	busyRetries = 20
	busyPause   = 5 * time.Millisecond
)

// readySupervisor is a supervisor that waits for its spec. It ends by itself
// when the connection closes before that.
type readySupervisor struct {
	process    *osexec.Cmd
	connection *net.UnixConn
}

// takeSupervisor returns a supervisor that was kept ready, or a new one. One for
// a task with limits runs that task only.
func (d *Driver) takeSupervisor(limits []supervisor.Limit) (ready *readySupervisor, spare bool, err error) {
	d.starts.Add(1)
	if len(limits) > 0 {
		if ready, err = d.newSupervisor(); err != nil {
			return nil, false, err
		}
		if err := raiseLimits(ready.process.Process.Pid, limits); err != nil {
			ready.dismiss()
			return nil, false, err
		}
		return ready, false, nil
	}
	select {
	case ready := <-d.spares:
		return ready, true, nil
	default:
		ready, err := d.newSupervisor()
		return ready, false, err
	}
}

// giveBack keeps the supervisor of a task that has ended, for another one, or
// ends it when there are enough.
func (d *Driver) giveBack(ready *readySupervisor) {
	select {
	case d.spares <- ready:
		d.trimLater()
	default:
		ready.dismiss()
	}
}

// dismiss ends a supervisor without a task.
func (r *readySupervisor) dismiss() {
	r.connection.Close()
	timer := time.AfterFunc(startPatience, func() { r.process.Process.Kill() })
	defer timer.Stop()
	_ = r.process.Wait() // it has nothing to tell
}

// trimLater sends supervisors away that nobody has needed for a while. One
// goroutine at a time waits for that.
func (d *Driver) trimLater() {
	if len(d.spares) <= d.sparesWanted || !d.trimming.CompareAndSwap(false, true) {
		return
	}
	started := d.spawnWork(func() {
		defer d.trimming.Store(false)
		for len(d.spares) > d.sparesWanted {
			before := d.starts.Load()
			timer := time.NewTimer(sparesIdle)
			select {
			case <-timer.C:
			case <-d.life.Done():
				timer.Stop()
				return
			}
			for d.starts.Load() == before && len(d.spares) > d.sparesWanted {
				select {
				case ready := <-d.spares:
					ready.dismiss()
				default:
				}
			}
		}
	})
	if !started {
		d.trimming.Store(false)
	}
}

// refill starts supervisors in the background until enough are ready. One
// goroutine at a time does it, whoever asks.
func (d *Driver) refill() {
	if len(d.spares) >= d.sparesWanted || !d.refilling.CompareAndSwap(false, true) {
		return
	}
	started := d.spawnWork(func() {
		defer d.refilling.Store(false)
		if _, err := d.level(d.life); err != nil {
			return
		}
		for len(d.spares) < d.sparesWanted && d.life.Err() == nil {
			ready, err := d.newSupervisor()
			if err != nil {
				d.log.Warn("no supervisor can be kept ready", logkey.Error, err)
				return // the next start says why, or asks again
			}
			d.giveBack(ready)
		}
	})
	if !started {
		d.refilling.Store(false)
	}
}

// dismissSpares ends the supervisors that got no task. Called when nothing
// fills or takes them any more.
func (d *Driver) dismissSpares() {
	for {
		select {
		case ready := <-d.spares:
			ready.dismiss()
		default:
			return
		}
	}
}

// newSupervisor starts a supervisor process for the kind of tasks that the
// driver runs. Called once the level of isolation is known.
func (d *Driver) newSupervisor() (*readySupervisor, error) {
	return d.spawnSupervisor(d.found.isolated && d.found.users)
}

// spawnSupervisor starts a supervisor process with one end of a socket pair, in
// a user namespace of its own if asked for.
func (d *Driver) spawnSupervisor(users bool) (*readySupervisor, error) {
	// A session of its own: no signal meant for the agent reaches it.
	attributes := &syscall.SysProcAttr{Setsid: true}
	if users {
		if err := userNamespace(attributes, d.root); err != nil {
			return nil, err
		}
	}
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make socket pair: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "supervisor"), os.NewFile(uintptr(pair[1]), "agent")
	defer ours.Close() // net.FileConn makes a copy
	defer theirs.Close()
	connection, err := net.FileConn(ours)
	if err != nil {
		return nil, err
	}
	for try := 0; ; try++ {
		process := &osexec.Cmd{
			Path: d.supervisor[0], Args: d.supervisor, Dir: d.config.tasksDir(),
			Env:         supervisor.Environ(),
			Stderr:      d.supervisorLog,
			ExtraFiles:  []*os.File{theirs}, // supervisor.ConnectionFD
			SysProcAttr: attributes,
		}
		err := process.Start()
		if err == nil {
			return &readySupervisor{process: process, connection: connection.(*net.UnixConn)}, nil
		}
		// The program was written a moment ago, and another thread's fork
		// holds the descriptor for the moment before its exec.
		if !errors.Is(err, syscall.ETXTBSY) || try == busyRetries {
			connection.Close()
			return nil, err
		}
		time.Sleep(busyPause)
	}
}

package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// ErrLocked is returned for a record that somebody else is just deciding: a
// supervisor that is starting the task, or an agent that declares it lost.
var ErrLocked = errors.New("record is locked")

// A lock on the record (flock) decides between a supervisor with a request of
// an agent that is gone, and the next agent, which looks for the task. The
// supervisor holds it from making the record until the state is in it, and
// looks in between whether its agent is still there. So an agent that finds
// no record can be sure that no command comes later, one that gets the lock
// of an empty record can keep it from coming, and one that does not get it
// has to wait. The kernel drops the lock of a process that dies.

// lock takes the lock of a record, without waiting, and returns what the file
// is then. One that has lost its name counts as locked: it is not the record.
func lock(file *os.File) (*syscall.Stat_t, error) {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == syscall.EWOULDBLOCK {
		return nil, ErrLocked
	}
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	var info syscall.Stat_t
	if err := syscall.Fstat(int(file.Fd()), &info); err != nil {
		return nil, fmt.Errorf("stat: %w", err)
	}
	if info.Nlink == 0 {
		return nil, ErrLocked
	}
	return &info, nil
}

// unlock drops the lock also for a child that is just being forked.
func unlock(file *os.File) { _ = syscall.Flock(int(file.Fd()), syscall.LOCK_UN) }

// Claim is a record in the hands of an agent: no supervisor starts the task
// as long as it is locked, nor afterwards if the end was written.
type Claim struct{ record *recordFile }

// ClaimRecord takes the record of a task whose supervisor does not answer,
// and reads it. It makes an empty one if there is none. The error is ErrLocked
// while a supervisor may be starting the task: try again.
func ClaimRecord(dir, taskID string) (*Claim, Record, error) {
	path := filepath.Join(dir, taskID+RecordSuffix)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, Record{}, fmt.Errorf("claim record: %w", err)
	}
	if _, err := lock(file); err != nil {
		file.Close()
		return nil, Record{}, fmt.Errorf("claim record: %w", err)
	}
	// A record that cannot be read says nothing, and is claimed all the same.
	record, _ := ReadRecord(dir, taskID)
	return &Claim{record: &recordFile{file: file}}, record, nil
}

// WriteExit records the end of the task, durably.
func (c *Claim) WriteExit(exit *Exit) error { return c.record.writeExit(exit) }

// Release unlocks the record. Called once.
func (c *Claim) Release() {
	c.record.release()
	c.record.close()
}

// Discard removes what a start has left whose supervisor was killed: the
// record and the socket, if they are of the given marker or nobody's. The
// supervisor must have been collected.
func Discard(dir, taskID, marker string) error {
	path := filepath.Join(dir, taskID+RecordSuffix)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil // without a record there was no socket
	}
	if err != nil {
		return fmt.Errorf("discard record: %w", err)
	}
	c := &Claim{record: &recordFile{file: file}}
	defer c.Release()
	if _, err := lock(file); errors.Is(err, ErrLocked) {
		return nil // by another start
	} else if err != nil {
		return fmt.Errorf("discard record: %w", err)
	}
	record, err := ReadRecord(dir, taskID)
	if err != nil {
		return err
	}
	if record.State != nil && record.State.Marker != marker || record.State == nil && record.Exit != nil {
		return nil
	}
	// In this order: the record is what protects the socket's name.
	for _, name := range []string{filepath.Join(dir, taskID+SocketSuffix), path} {
		if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("discard record: %w", err)
		}
	}
	return nil
}
